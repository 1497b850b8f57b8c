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
    "the program private-ate was not found. Install it with `pip install .` in a clone of the project, ",
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

# What the program says of flags, said of arguments; the first pattern that fits counts. Every other
# word is the program's own.
words_of_r <- c(
  "\\bCOL=" = "column=",
  " \\(of several outcomes: [^)]*\\)" = "",
  "--outcome-bounds LO HI" = "`outcome_bounds = c(low, high)`",
  "--bounds (\\S+)=LO:HI" = "`bounds = list(\\1 = c(low, high))`",
  "--bounds (\\S+)=0:W" = "`bounds = list(\\1 = c(0, highest))`",
  "--categories '?(\\S+)=a\\|b\\|c'?" = "`categories = list(\\1 = c(\"a\", \"b\"))`",
  "--arms A,B,C" = "`arms = c(\"a\", \"b\", \"c\")`",
  "--treatment-bins LOW EDGE \\S+ HIGH" = "`treatment_bins = c(low, edge, high)`",
  "--by COLUMN,COLUMN<NUMBER" = "`by = c(\"column\", \"column<number\")`",
  "--missing-outcomes public, private or NUMBER" =
    "`missing_outcomes = \"public\"`, \"private\" or a number",
  "--probability P or COLUMN" = "`probability`, a number or a column",
  "--treatment T|--outcome Y|--covariates A,B" = "the formula, `outcome ~ treatment | covariates`",
  "--set (\\w+)=\\S*" = "`options = list(\\1 = ...)`",
  "--domain FILE" = "`domain = \"file.toml\"`",
  "--design randomized" = "`design = \"randomized\"`",
  "--head HASH" = "`ledger_head`, a text",
  "--(binary-outcome|overall|leave-out-undeclared|means)\\b" = "`\\1 = TRUE`",
  "--([a-z]+(?:-[a-z]+)*) (?:NAME|LABEL|HASH|COLUMN|ID)\\b" = "`\\1 = \"...\"`",
  "--([a-z]+(?:-[a-z]+)*) [A-Z]{1,2}(?:,[A-Z])*\\b" = "`\\1 = ...`",
  "--([a-z]+(?:-[a-z]+)*)" = "`\\1`",
  "; here: " = "; in R: ",
  "Interval\\(lo, hi(?:, missing=number)?\\)" = "c(low, high)",
  "\\bTrue\\b" = "TRUE", "\\bFalse\\b" = "FALSE", "\\bNone\\b" = "NULL"
)

in_words_of_r <- function(lines, code) {
  reported <- grep("^error: ", lines, value = TRUE)
  text <- if (length(reported)) {
    sub("^error: ", "", reported[length(reported)])
  } else {
    # A wrong value of an argument: a box below two lines about the program's help.
    said <- lines[!grepl("^(Usage: |Try |\\s*\u256d)", lines)]
    gsub("\\s+", " ", trimws(paste(gsub("[\u2500-\u257f]", "", said), collapse = " ")))
  }
  if (!nzchar(text)) text <- paste("private-ate ended with code", code)
  for (pattern in names(words_of_r)) {
    text <- gsub(pattern, words_of_r[[pattern]], text, perl = TRUE)
  }
  # Names of arguments have underscores where flags have hyphens.
  quoted <- gregexpr("`[a-z]+(-[a-z]+)+", text)
  regmatches(text, quoted) <- lapply(regmatches(text, quoted), function(found) gsub("-", "_", found))
  text
}
