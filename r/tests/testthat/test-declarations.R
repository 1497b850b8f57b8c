test_that("at sample level levels are not taken from a factor", {
  data <- study()
  data$treat <- factor(data$treat)

  expect_error(ask(level = "sample", bounds = list(age = c(18, 99))), "categories = list\\(sex = c")
  expect_error(ask(y ~ treat | age, data, level = "sample", bounds = list(age = c(18, 99))),
               "private at sample level")
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
