# y ~ treat | age + sex: an outcome, a treatment, and columns that are adjusted for.
# Surv(days, status) ~ treat | age + sex: a time to an event and what ended it.

parse_formula <- function(formula, known) {
  if (!inherits(formula, "formula") || length(formula) != 3) refuse(formula_help)
  right <- formula[[3]]
  covariates <- NULL
  if (is.call(right) && identical(right[[1]], as.name("|"))) {
    covariates <- terms_of(right[[3]])
    right <- right[[2]]
  }
  left <- left_names(formula[[2]])
  asked <- list(outcome = left[1], treatment = one_name(right), covariates = covariates)
  if (length(left) == 2) asked$event <- left[2]
  for (name in setdiff(c(left, asked$treatment, covariates), ".")) {
    if (!name %in% known) refuse("`data` has no column ", sQuote(name, FALSE))
  }
  if (anyDuplicated(c(left, asked$treatment)) || any(c(left, asked$treatment) %in% covariates)) {
    refuse("outcome, treatment and covariates are different columns")
  }
  if (anyDuplicated(known)) refuse("two columns of `data` have the same name; rename one of them")
  asked$text <- paste(deparse(formula, width.cutoff = 500L), collapse = " ")
  asked
}

formula_help <- paste(
  "the formula is outcome ~ treatment | covariate + covariate, of columns as they are; compute",
  "new columns in the data frame first. A time to an event is Surv(time, status) on the left"
)

# The outcome's column, or those of a time and of what ended it.
left_names <- function(part) {
  is_surv <- is.call(part) && deparse(part[[1]]) %in% c("Surv", "survival::Surv")
  if (!is_surv) return(one_name(part))
  if (length(part) != 3) refuse("Surv() takes a time and a status: ", formula_help)
  c(one_name(part[[2]]), one_name(part[[3]]))
}

one_name <- function(part) {
  if (!is.name(part) || identical(part, as.name("."))) refuse(formula_help)
  as.character(part)
}

# a + b + c as names; a dot stands for every other column.
terms_of <- function(part) {
  if (is.name(part)) return(as.character(part))
  if (is.call(part) && identical(part[[1]], as.name("+")) && length(part) == 3) {
    return(unique(c(terms_of(part[[2]]), terms_of(part[[3]]))))
  }
  if (is.call(part) && identical(part[[1]], as.name("(")) ) return(terms_of(part[[2]]))
  refuse(formula_help)
}

expand_dot <- function(asked, known, special) {
  if (!"." %in% asked$covariates) return(asked$covariates)
  others <- setdiff(known, c(asked$outcome, asked$event, asked$treatment, special))
  union(setdiff(asked$covariates, "."), others)
}

# Only what is asked about leaves the session; a domain alone may mean any column.
columns_in_use <- function(asked, data, by, weights, probability, domain, person = NULL) {
  cuts <- trimws(sub("<.*$", "", as.character(by)))
  extra <- c(weights, person, if (is.character(probability)) probability, cuts)
  for (name in setdiff(extra, names(data))) refuse("`data` has no column ", sQuote(name, FALSE))
  named <- c(asked$outcome, asked$event, asked$treatment, asked$covariates, extra)
  if (is.null(asked$covariates) && !is.null(domain)) {
    named <- c(named, names(data)[vapply(data, is_readable, NA)])
  }
  unique(named)
}

role_of <- function(name, asked) {
  if (identical(name, asked$event)) return("event")
  if (name == asked$outcome) "outcome" else if (name == asked$treatment) "treatment" else "covariate"
}
