test_that("only the columns in use are handed over, with every digit", {
  data <- study(3)
  lines <- lines_handed_over(data = data)

  expect_identical(lines[1], "\"y\",\"treat\",\"age\",\"sex\"")
  expect_identical(as.numeric(sub(",.*", "", lines[-1])), data$y)
})

test_that("missing values are empty fields, whatever the column's class", {
  data <- data.frame(y = c(1.5, NA, NaN), treat = c(1L, NA, 0L), a = c(TRUE, NA, FALSE),
                     f = factor(c("u", NA, "v")), s = c("p", NA, "NA"))
  lines <- lines_handed_over(formula = y ~ treat | a + f + s, data = data)

  expect_identical(lines[-1], c("1.5,1,1,\"u\",\"p\"", ",,,,", ",0,0,\"v\",\"NA\""))
})

test_that("a text stays on its line, in UTF-8, and its quotes are doubled", {
  odd <- c("a\nb", "say \"x\"", "s\xfcd", "\xff\xfe")
  Encoding(odd) <- c("UTF-8", "UTF-8", "latin1", "bytes")
  lines <- lines_handed_over(formula = y ~ treat | s,
                             data = data.frame(y = 1, treat = 0:3 %% 2, s = odd))

  expect_length(lines, 5)
  expect_identical(lines[2:4], c("1,0,\"a\u240ab\"", "1,1,\"say \"\"x\"\"\"", "1,0,\"s\u00fcd\""))
})

test_that("levels of a factor are declared as they are, with commas, bars and quotes", {
  data <- study(40)
  data$treat <- cut(data$age, c(0, 40, 60, 99))
  data$sex <- factor(rep(c("a|b", "c\"d", "e\\f", "10"), 10))
  text <- lines_handed_over(data = data, name = "domain.toml")

  expect_true("arms = [\"(0,40]\", \"(40,60]\", \"(60,99]\"]" %in% text)
  expect_true("categories = [\"10\", \"a|b\", \"c\\\"d\", \"e\\\\f\"]" %in% text)
})

test_that("texts that look like numbers stay labels", {
  data <- study(40)
  data$sex <- rep(c("01", "20"), 20)

  expect_true("categories = [\"01\", \"20\"]" %in% lines_handed_over(data = data, name = "domain.toml"))
})

test_that("truth values are declared by their type", {
  data <- study(40)
  data$treat <- data$treat == 1
  data$y <- data$y > 15
  data$sex <- data$sex == "f"
  text <- lines_handed_over(data = data, outcome_bounds = NULL, name = "domain.toml", level = "sample")

  expect_identical(sum(text == "binary = true"), 2L)
  expect_true(all(c("control = \"FALSE\"", "treated = \"TRUE\"") %in% text))
})

test_that("labelled columns are their codes", {
  data <- study(4)
  data$treat <- structure(c(1, 0, 1, 0), labels = c(no = 0, yes = 1),
                          class = c("haven_labelled", "vctrs_vctr", "double"))

  expect_identical(sub("^[^,]*,([^,]*),.*", "\\1", lines_handed_over(data = data)[-1]),
                   c("1", "0", "1", "0"))
})

test_that("whole numbers of 64 bits keep their value", {
  skip_if_not_installed("bit64")
  data <- study(2)
  data$age <- bit64::as.integer64(c("9007199254740993", NA))
  lines <- lines_handed_over(data = data)

  expect_match(lines[2], ",9007199254740992,", fixed = TRUE)
  expect_match(lines[3], ",,", fixed = TRUE)
})

test_that("dates, times, lists and matrices are refused by their class", {
  data <- study(3)
  for (odd in list(as.Date("2024-01-02") + 0:2, Sys.time() + 0:2, I(list(1, 2, 3)), I(diag(3)))) {
    data$age <- odd
    expect_error(ask(data = data), "column 'age' is of class")
  }
})

test_that("a factor is no outcome", {
  data <- study(4)
  data$y <- factor(data$y)

  expect_error(ask(data = data), "the outcome 'y' is a column of factors")
})
