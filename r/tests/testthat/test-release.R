test_that("a release is shown, summarised and drawn", {
  release <- released()

  expect_output(print(release), "Average treatment effect\ny ~ treat \\| age \\+ sex")
  expect_output(print(release), "missing outcomes: a missing outcome counts as the middle")
  expect_output(print(release), "guarantee: none")
  expect_output(print(summary(release)), "standardised differences")
  expect_identical(unname(coef(release)), release$ate)
  expect_identical(unname(confint(release)[1, ]), release$interval)
  expect_error(confint(release, level = 0.9), "another release")
  path <- tempfile(fileext = ".png")
  grDevices::png(path)
  plot(release)
  grDevices::dev.off()
  expect_gt(file.size(path), 1000)
})

test_that("a number that adjusts for nothing is not called an effect", {
  expect_output(print(ask(y ~ treat)), "Difference in means, not adjusted")
})

test_that("a binary outcome is shown with what follows from its effect", {
  data <- study()
  data$died <- factor(ifelse(data$y > stats::median(data$y), "dead", "alive"))
  died <- ask(died ~ treat | age + sex, data, outcome_bounds = NULL, event_label = "dead", means = TRUE)

  for (words in c("means: 0", "risk ratio: ", "odds ratio: ", "needed to treat: [0-9.]+ for one event")) {
    expect_output(print(died), words)
  }
  expect_false(any(grepl("needed to treat", capture.output(print(released())))))
})

test_that("several arms and subgroups have a row each", {
  data <- study(900)
  data$dose <- factor(sample(c("none", "low", "high"), 900, TRUE), c("none", "low", "high"))
  arms <- ask(y ~ dose | age + sex, data)
  cells <- ask(y ~ treat | age + sex, data, bounds = list(age = c(18, 99)),
               by = c("sex", "age<50"), overall = TRUE)

  expect_identical(arms$treatment$reference, "none")
  expect_identical(arms$effects$arm, c("low", "high", "high"))
  expect_true(all(c("sex=f", "sex=m") %in% cells$effects$subgroup))
  expect_output(print(cells), "all at once")
})

test_that("what is declared, not how it is handed over, decides about the number", {
  data <- study()
  data$treat <- factor(ifelse(data$treat == 1, "yes", "no"))

  expect_identical(ask(data = data)$ate, released()$ate)
})

test_that("another reference can be named", {
  data <- study()
  data$treat <- factor(data$treat)

  expect_identical(ask(data = data, reference = "1")$treatment$reference, "1")
})

test_that("sample level runs with declared bounds and labels", {
  release <- ask(level = "sample", epsilon = 4, treated = 1, control = 0, bounds = list(age = c(18, 99)),
                 categories = list(sex = c("f", "m")), confidence = NULL)

  expect_identical(release$level, "sample")
})

test_that("a saved release is the program's own text", {
  release <- released()
  path <- tempfile(fileext = ".json")
  write_release(release, path)

  expect_identical(jsonlite::fromJSON(path)$ate, release$ate)
  expect_identical(
    system2(find_private_ate(), c("report", shQuote(path)), stdout = FALSE, stderr = FALSE), 0L
  )
})

test_that("a release holds nothing of the data frame", {
  release <- do.call(private_ate, list(
    y ~ treat | age + sex, study(), level = "label", epsilon = 1, outcome_bounds = c(0, 40)
  ))
  bytes <- rawToChar(serialize(release, NULL, ascii = TRUE))

  expect_false(grepl(canary, bytes, fixed = TRUE))
  expect_lt(nchar(bytes), 1e5)
})
