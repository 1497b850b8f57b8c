# Finding the program, running it, and turning what it says into R's words.

find_private_ate <- function() {
  named <- c(getOption("private_ate.program"), Sys.getenv("PRIVATE_ATE", NA))
  named <- named[!is.na(named) & nzchar(named)]
  if (length(named)) {
    found <- unname(Sys.which(path.expand(named[1])))
    if (!nzchar(found)) {
      refuse("there is no program at ", sQuote(named[1], FALSE), ", which options(private_ate.program = ) ",
             "or the variable PRIVATE_ATE names", class = "private_ate_absent")
    }
    return(found)
  }
  found <- unname(Sys.which("private-ate"))
  if (nzchar(found)) return(found)
  refuse(
    "the program private-ate was not found. Install it with `pip install private-ate` (or pipx), ",
    "then say where it is if it is not on the PATH: options(private_ate.program = ",
    "\"/path/to/private-ate\"), or the environment variable PRIVATE_ATE",
    class = "private_ate_absent"
  )
}

run_program <- function(program, arguments, place) {
  said <- file.path(place, "messages")
  # R's own libraries are not Python's.
  libraries <- Sys.getenv("LD_LIBRARY_PATH", NA)
  Sys.unsetenv("LD_LIBRARY_PATH")
  on.exit(if (!is.na(libraries)) Sys.setenv(LD_LIBRARY_PATH = libraries), add = TRUE)
  code <- suppressWarnings(
    system2(program, quoted_arguments(arguments), stdout = FALSE, stderr = said)
  )
  if (code == 0) return(invisible())
  text <- if (file.exists(said)) readLines(said, warn = FALSE, encoding = "UTF-8")
  class <- if (code == 3) "private_ate_budget" else NULL
  refuse(in_words_of_r(text, code), class = class)
}

# Bytes as they are: in a session without UTF-8 R would write <U+00FC> for a letter.
quoted_arguments <- function(arguments) {
  type <- if (.Platform$OS.type == "windows") "cmd" else "sh"
  texts <- shQuote(enc2utf8(arguments), type = type)
  if (type == "sh") Encoding(texts) <- "unknown"
  texts
}

# `--outcome-bounds` is `outcome_bounds` here; everything else is the program's own sentence.
in_words_of_r <- function(lines, code) {
  told <- grep("^error: ", lines, value = TRUE)
  text <- if (length(told)) {
    sub("^error: ", "", told[length(told)])
  } else {
    trimws(paste(gsub("[\u2500-\u257f]", "", lines), collapse = " "))
  }
  if (!nzchar(text)) text <- paste("private-ate ended with code", code)
  flags <- gregexpr("--[a-z]+(-[a-z]+)*", text)
  regmatches(text, flags) <- lapply(regmatches(text, flags), function(found) {
    paste0("`", gsub("-", "_", sub("^--", "", found)), "`")
  })
  text <- sub("`outcome_bounds` LO HI", "`outcome_bounds = c(low, high)`", text, fixed = TRUE)
  text <- sub("`bounds` (\\S+)=LO:HI", "`bounds = list(\\1 = c(low, high))`", text)
  text <- sub("`bounds` (\\S+)=0:W", "`bounds = list(\\1 = c(0, highest))`", text)
  sub("`categories` '(\\S+)=a\\|b\\|c'", "`categories = list(\\1 = c(\"a\", \"b\"))`", text)
}
