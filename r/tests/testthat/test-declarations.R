test_that("at sample level levels are not taken from a factor", {
  data <- study()
  data$treat <- factor(data$treat)

  expect_error(ask(level = "sample", treated = 1, control = 0, bounds = list(age = c(18, 99))),
               "categories = list\\(sex = c")
  expect_error(ask(y ~ treat | age, data, level = "sample", bounds = list(age = c(18, 99))),
               "private at sample level")
})

test_that("at sample level 1 and 0 are not assumed to be the arms", {
  expect_error(ask(level = "sample", bounds = list(age = c(18, 99))), "treated = 1, control = 0")
})

test_that("texts are no arms until they are named", {
  data <- study()
  data$treat <- ifelse(data$treat == 1, "yes", "no")

  expect_error(ask(data = data), "name its arms")
  expect_identical(ask(data = data, arms = c("no", "yes"))$treatment$reference, "no")
})

test_that("a domain file and arguments do not declare the same things", {
  path <- tempfile(fileext = ".toml")
  writeLines("", path)

  expect_error(ask(domain = path), "leave out `outcome_bounds`")
})

test_that("in a domain's place labels that look like numbers are not guessed at", {
  data <- study(40)
  data$sex <- factor(rep(1:2, 20))
  path <- tempfile(fileext = ".toml")
  writeLines(c("[treatment]", "column = \"treat\"", "[outcome]", "column = \"y\"", "low = 0",
               "high = 40"), path)

  expect_error(ask(data = data, outcome_bounds = NULL, domain = path, transfer = "csv"),
               "column 'sex' holds labels that look like numbers")
  cat("[covariates.sex]\ncategories = [\"1\", \"2\"]\n", file = path, append = TRUE)
  expect_identical(ask(data = data, outcome_bounds = NULL, domain = path)$covariates, c("age", "sex"))
})

test_that("at sample level no entry decides which error comes", {
  path <- tempfile(fileext = ".toml")
  writeLines(c("[treatment]", "column = \"treat\"", "[outcome]", "column = \"y\"", "low = 0",
               "high = 40", "[covariates.age]", "low = 0", "high = 99"), path)
  refusal <- function(entry, as = identity) {
    data <- study(40)
    data$sex <- as(c(rep(c("01", "20"), 19), "20", entry))
    tryCatch(
      ask(data = data, level = "sample", outcome_bounds = NULL, domain = path, transfer = "csv"),
      private_ate_error = conditionMessage
    )
  }

  for (as in list(identity, factor)) {
    expect_match(refusal("01", as), "'sex' has no declared bounds")
    for (entry in c("odd", NA, "", "1e5", "\xff")) expect_identical(refusal(entry, as), refusal("01", as))
  }
})

test_that("a formula is of columns as they are", {
  for (odd in list(y ~ treat | log(age), log(y) ~ treat, y ~ treat * age, ~treat, y ~ . | age)) {
    expect_error(ask(odd), "compute new columns in the data frame first")
  }
  expect_error(ask(y ~ treat | weight), "no column 'weight'")
  expect_error(ask(y ~ treat | y), "different columns")
})

test_that("a dot stands for every other column but the weights", {
  data <- study()[c("y", "treat", "age", "sex")]
  data$w <- 1

  expect_identical(
    ask(y ~ treat | ., data, weights = "w", bounds = list(w = c(0, 2)))$covariates, c("age", "sex")
  )
})

test_that("a column of ids says how many rows a person has and is no covariate", {
  data <- study()[c("y", "treat", "age", "sex")]
  data$id <- rep(seq_len(nrow(data)), each = 2, length.out = nrow(data))
  release <- ask(y ~ treat | ., data, person = "id")

  expect_identical(release$covariates, c("age", "sex"))
  expect_equal(release$settings$rows_per_person, 2)
})

test_that("a factor is an outcome once its event is named", {
  data <- study()
  data$y <- factor(ifelse(data$y > 15, "high", "low"))

  expect_error(ask(data = data, outcome_bounds = NULL), "event_label")
  release <- ask(data = data, outcome_bounds = NULL, event_label = "high", missing_outcomes = "private")
  expect_identical(release$level, "label")
})

test_that("a time to an event is Surv() on the left", {
  known <- c("days", "status", "arm", "age")
  asked <- parse_formula(Surv(days, status) ~ arm | age, known)
  expect_equal(asked$outcome, "days")
  expect_equal(asked$event, "status")
  expect_equal(role_of("status", asked), "event")
  columns <- list(
    days = list(kind = "number"), status = list(kind = "number"),
    arm = list(kind = "number"), age = list(kind = "number")
  )
  declared <- list(horizon = 365, bins = 6, treated = 1, control = 0)
  text <- domain_text(asked, columns, declared, NULL, "label")
  expect_true(all(c(
    "time = \"days\"", "event = \"status\"", "event_label = \"1\"", "horizon = 365.0", "bins = 6"
  ) %in% text))
  expect_error(domain_text(asked, columns, list(treated = 1, control = 0), NULL, "label"), "horizon")
  expect_error(parse_formula(Surv(days) ~ arm, known), "a time and a status")
})
