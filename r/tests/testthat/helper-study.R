# A study that every test draws alike, and a word that must never leave it.

canary <- "canary-4711"

study <- function(rows = 400) {
  set.seed(3)
  x <- runif(rows)
  treat <- as.integer(runif(rows) < 0.3 + 0.4 * x)
  data.frame(
    y = 10 + 8 * x + 5 * treat + rnorm(rows), treat = treat, age = 20 + 60 * x,
    sex = factor(sample(c("f", "m"), rows, replace = TRUE)), note = canary
  )
}

ask <- function(formula = y ~ treat | age + sex, data = study(), level = "label", epsilon = 1,
                outcome_bounds = c(0, 40), seed = 1, ...) {
  private_ate(formula, data, level = level, epsilon = epsilon, outcome_bounds = outcome_bounds,
              seed = seed, ...)
}

# One release for all tests that only look at it.
released <- local({
  made <- NULL
  function() {
    if (is.null(made)) made <<- ask()
    made
  }
})

# A program of our own in the place of the real one; it sees what ours hands over.
stand_in <- function(...) {
  path <- tempfile(fileext = ".sh")
  writeLines(c("#!/bin/sh", ...), path)
  Sys.chmod(path, "0700")
  path
}

lines_handed_over <- function(..., formula = y ~ treat | age + sex, data = study(), name = "data.csv") {
  kept <- tempfile()
  program <- stand_in(paste0("cp \"$(dirname \"$2\")/", name, "\" ", kept), "exit 2")
  expect_error(ask(formula, data, program = program, ...), class = "private_ate_error")
  readLines(kept, encoding = "UTF-8")
}
