# What is declared, as the program's domain file.
#
# At label level covariates and treatment are public, and the levels of a factor may say what its
# labels are. At sample level they may not: factor() takes levels from the records.

domain_text <- function(asked, columns, declared, weights, level) {
  c(
    "[treatment]", entry("column", asked$treatment), arm_lines(asked, columns, declared, level),
    "", "[outcome]", outcome_table(asked, columns, declared),
    covariate_lines(asked, columns, declared, weights, level)
  )
}

refuse_two_declarations <- function(declared) {
  given <- names(Filter(Negate(is.null), declared))
  if (length(given)) {
    refuse("declare in the domain file or by arguments, not both: leave out ",
           toString(paste0("`", given, "`")))
  }
}

# In a CSV file a text that looks like a number is one, unless the domain says otherwise. At sample
# level entries are private and are not looked at: the program refuses what is not declared.
refuse_numbers_as_labels <- function(columns, asked, domain, transfer, level) {
  if (!file.exists(domain)) refuse("there is no domain file at `domain`")
  if (transfer != "csv" || level == "sample") return(invisible())
  text <- paste(readLines(domain, warn = FALSE, encoding = "UTF-8"), collapse = "\n")
  for (name in asked$covariates) {
    column <- columns[[name]]
    if (column$kind %in% c("factor", "text") && looks_like_numbers(column$values) &&
        !grepl(name, text, fixed = TRUE)) {
      refuse("column ", sQuote(name, FALSE), " holds labels that look like numbers: declare its ",
             "categories in the domain file, or make it numbers")
    }
  }
}

arm_lines <- function(asked, columns, declared, level) {
  column <- columns[[asked$treatment]]
  ways <- c(!is.null(declared$treated) || !is.null(declared$control), !is.null(declared$arms),
            !is.null(declared$treatment_bins))
  if (sum(ways) > 1) {
    refuse("arms are declared by `treated` and `control`, by `arms`, or by `treatment_bins`; keep one")
  }
  if (ways[1]) return(pair_lines(declared))
  if (ways[2]) return(labels_lines(label_texts(declared$arms)))
  if (ways[3]) {
    edges <- declared$treatment_bins
    if (!is.numeric(edges) || anyNA(edges)) refuse("`treatment_bins` are numbers that rise")
    return(paste0("bins = [", paste(toml_number(edges), collapse = ", "), "]"))
  }
  switch(
    column$kind,
    number = if (level == "sample") {
      refuse("the labels of treatment ", sQuote(asked$treatment, FALSE), " are private at sample ",
             "level and are not assumed: say which are compared, treated = 1, control = 0")
    }, # at label level the program's own: 1 is treated, 0 is not
    truth = labels_lines(c("FALSE", "TRUE")),
    factor = {
      if (level == "sample") refuse_levels(asked$treatment, "arms = c(\"no\", \"yes\")")
      labels_lines(column$labels)
    },
    refuse("the treatment ", sQuote(asked$treatment, FALSE), " is a column of texts: name its arms, ",
           "the reference first, such as arms = c(\"no\", \"yes\"), or make it a factor")
  )
}

pair_lines <- function(declared) {
  if (is.null(declared$treated) || is.null(declared$control)) {
    refuse("`treated` and `control` are given together")
  }
  c(entry("treated", label_texts(declared$treated)), entry("control", label_texts(declared$control)))
}

# The first is the reference; the program compares two as treated with control.
labels_lines <- function(labels) {
  if (length(labels) < 2) refuse("a treatment has two arms at least")
  if (length(labels) == 2) return(c(entry("control", labels[1]), entry("treated", labels[2])))
  c(paste0("arms = [", paste(toml_text(labels), collapse = ", "), "]"))
}

refuse_levels <- function(name, remedy) {
  refuse("column ", sQuote(name, FALSE), " is a factor, and levels can come from the records, which ",
         "are private at sample level: declare them from the code book, ", remedy)
}

outcome_table <- function(asked, columns, declared) {
  if (is.null(asked$event)) {
    return(c(entry("column", asked$outcome), outcome_lines(asked, columns, declared)))
  }
  if (is.null(declared$horizon)) refuse("survival is compared up to a `horizon`, from the protocol")
  if (!is.null(declared$outcome_bounds) || isTRUE(declared$binary_outcome)) {
    refuse("times run from 0 to the horizon: leave out `outcome_bounds` and `binary_outcome`")
  }
  # As in Surv(): 1 or TRUE is an event unless somebody says otherwise.
  event <- if (is.null(declared$event_label)) "1" else label_texts(declared$event_label)
  c(
    entry("time", asked$outcome), entry("event", asked$event), entry("event_label", event),
    paste("horizon =", toml_number(as.numeric(number_text(declared$horizon, "horizon")))),
    if (!is.null(declared$bins)) paste("bins =", number_text(declared$bins, "bins")),
    if (!is.null(declared$censoring_by)) entry("censoring_by", declared$censoring_by)
  )
}

outcome_lines <- function(asked, columns, declared) {
  if (!is.null(declared$event_label)) return(entry("event_label", label_texts(declared$event_label)))
  is_truth <- columns[[asked$outcome]]$kind == "truth" && is.null(declared$outcome_bounds)
  if (isTRUE(declared$binary_outcome) || (is_truth && is.null(declared$binary_outcome))) {
    return("binary = true")
  }
  if (is.null(declared$outcome_bounds)) return(NULL)
  limit_lines(declared$outcome_bounds, "outcome_bounds")
}

covariate_lines <- function(asked, columns, declared, weights, level) {
  bounds <- as.list(declared$bounds)
  categories <- as.list(declared$categories)
  bounds[weights] <- NULL
  for (name in setdiff(c(names(bounds), names(categories)), names(columns))) {
    refuse("`bounds` and `categories` speak of ", sQuote(name, FALSE), ", which is no column in use")
  }
  unlist(lapply(setdiff(names(columns), c(asked$outcome, asked$event, asked$treatment, weights)), function(name) {
    lines <- if (!is.null(categories[[name]])) {
      category_line(label_texts(categories[[name]]))
    } else if (!is.null(bounds[[name]])) {
      limit_lines(bounds[[name]], name)
    } else {
      declared_by_class(columns[[name]], name, level)
    }
    if (!is.null(lines)) c("", paste0("[covariates.", toml_text(name), "]"), lines)
  }))
}

# What a column's class says of it; NULL leaves it to the program.
declared_by_class <- function(column, name, level) {
  if (column$kind == "truth") return("binary = true")
  if (column$kind == "factor" && level == "sample") {
    refuse_levels(name, paste0("categories = list(", name, " = c(\"a\", \"b\"))"))
  }
  if (level == "sample" || column$kind == "number") return(NULL)
  labels <- if (column$kind == "factor") column$labels else unique(column$values)
  labels <- unique(labels[!is.na(labels) & nzchar(labels)])
  if (length(labels) < 2) return(NULL)
  # Texts are looked up by the program, unless it could take them for numbers.
  if (column$kind == "text" && !looks_like_numbers(labels)) return(NULL)
  if (length(labels) > 200) {
    refuse("column ", sQuote(name, FALSE), " has more than 200 labels; leave it out")
  }
  category_line(labels)
}

category_line <- function(labels) {
  paste0("categories = [", paste(toml_text(labels), collapse = ", "), "]")
}

limit_lines <- function(limits, name) {
  limits <- pair(limits, name)
  c(paste("low =", toml_number(limits[1])), paste("high =", toml_number(limits[2])))
}

pair <- function(limits, name) {
  if (!is.numeric(limits) || length(limits) != 2 || !all(is.finite(limits))) {
    refuse("the bounds of ", sQuote(name, FALSE), " are two numbers, c(low, high)")
  }
  limits
}

label_texts <- function(labels) {
  texts <- if (is.numeric(labels)) sprintf("%.15g", labels) else plain_text(as.character(labels))
  if (anyNA(labels) || !all(nzchar(texts))) refuse("a label is a text that is not empty, or a number")
  texts
}

entry <- function(key, text) paste(key, "=", toml_text(text))

toml_number <- function(values) {
  texts <- sprintf("%.17g", values)
  ifelse(grepl("[.e]", texts), texts, paste0(texts, ".0"))
}

toml_text <- function(texts) {
  texts <- gsub("\\", "\\\\", plain_text(texts), fixed = TRUE)
  texts <- gsub("\"", "\\\"", texts, fixed = TRUE)
  paste0("\"", gsub("[\001-\037\177]", "\ufffd", texts), "\"")
}
