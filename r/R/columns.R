# Columns as they are handed over: numbers, texts and truth values, and nothing by accident.
#
# What a column becomes follows from its class alone. No message quotes an entry.

whole_numbers <- "integer64"
codes <- c("haven_labelled", "haven_labelled_spss", "labelled", "vctrs_vctr", "AsIs")

is_readable <- function(column) {
  own <- setdiff(class(column), c(codes, whole_numbers, "numeric", "integer", "double", "logical",
                                  "character", "factor", "ordered"))
  is.atomic(column) && is.null(dim(column)) && !length(own) &&
    typeof(column) %in% c("double", "integer", "logical", "character")
}

# Returns list(kind, values, labels): labels are a factor's levels, else NULL.
# An outcome takes labels if it is declared which of them is the event, or that it is binary.
plain_column <- function(column, name, role, takes_labels = FALSE) {
  if (!is_readable(column)) {
    refuse(
      "column ", sQuote(name, FALSE), " is of class ", toString(class(column)),
      ": make it numbers, texts, a factor or truth values first (as.numeric() of a date counts days)"
    )
  }
  if (is.factor(column)) {
    made <- list(kind = "factor", values = plain_text(as.character(column)),
                 labels = plain_text(levels(column)))
  } else if (inherits(column, whole_numbers)) {
    if (!requireNamespace("bit64", quietly = TRUE)) {
      refuse("column ", sQuote(name, FALSE), " is of class integer64, which needs the package bit64")
    }
    # A warning would tell that some entry is beyond 2^53.
    made <- list(kind = "number", values = suppressWarnings(bit64::as.double.integer64(column)))
  } else if (is.character(column)) {
    made <- list(kind = "text", values = plain_text(as.vector(unclass(column))))
  } else {
    values <- as.vector(unclass(column))
    made <- list(kind = if (is.logical(values)) "truth" else "number", values = values)
  }
  if (role == "outcome" && made$kind %in% c("factor", "text") && !takes_labels) {
    refuse("the outcome ", sQuote(name, FALSE), " is a column of ", made$kind,
           "s: say which label is the event, event_label = \"yes\", or make it numbers first")
  }
  if (made$kind == "truth") {
    made$values <- if (role == "treatment") as.character(made$values) else as.integer(made$values)
  }
  made
}

# Valid UTF-8 on one line. Labels and entries take the same way, so they stay equal.
plain_text <- function(texts) {
  texts <- as.vector(texts)
  raw <- Encoding(texts) == "bytes"
  Encoding(texts)[raw] <- "unknown"
  texts[!raw] <- enc2utf8(texts[!raw])
  texts <- iconv(texts, "UTF-8", "UTF-8", sub = "\ufffd")
  texts <- gsub("\r\n|\n|\r", "\u240a", texts)
  trimws(texts)
}

looks_like_numbers <- function(texts) {
  texts <- unique(texts[!is.na(texts) & nzchar(texts)])
  number <- "^[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?$"
  length(texts) > 0 && all(grepl(number, texts) | tolower(texts) %in% c("true", "false", "inf", "nan"))
}

# Readable by the owner alone, whatever the session's mask is.
private_folder <- function(folder) {
  if (!dir.exists(folder)) refuse("`folder` does not exist")
  place <- tempfile("private-ate-", tmpdir = folder)
  if (!dir.create(place, mode = "0700")) refuse("no folder can be made in `folder`")
  place
}

owner_only <- function(action) {
  mask <- Sys.umask("077")
  on.exit(Sys.umask(mask))
  action()
}

write_text <- function(lines, path) {
  owner_only(function() {
    connection <- file(path, "wb")
    on.exit(close(connection))
    writeLines(enc2utf8(lines), connection, sep = "\n", useBytes = TRUE)
  })
  path
}

chosen_transfer <- function(transfer) {
  has_arrow <- transfer != "csv" && requireNamespace("arrow", quietly = TRUE)
  if (transfer == "arrow" && !has_arrow) refuse("`transfer = \"arrow\"` needs the package arrow")
  if (has_arrow) "arrow" else "csv"
}

write_columns <- function(columns, place, transfer) {
  if (transfer == "arrow") {
    path <- file.path(place, "data.parquet")
    frame <- as.data.frame(lapply(columns, `[[`, "values"), stringsAsFactors = FALSE)
    names(frame) <- names(columns)
    owner_only(function() arrow::write_parquet(frame, path))
    return(path)
  }
  head <- paste(quoted(plain_text(names(columns))), collapse = ",")
  fields <- lapply(columns, function(column) csv_fields(column$values))
  write_text(c(head, do.call(paste, c(unname(fields), sep = ","))), file.path(place, "data.csv"))
}

# An empty field is a missing value; every digit of a number is kept.
csv_fields <- function(values) {
  if (is.character(values)) {
    texts <- quoted(values)
  } else if (is.integer(values)) {
    texts <- sprintf("%d", values)
  } else {
    texts <- sprintf("%.17g", values)
  }
  texts[is.na(values)] <- ""
  texts
}

quoted <- function(texts) paste0("\"", gsub("\"", "\"\"", texts, fixed = TRUE), "\"")
