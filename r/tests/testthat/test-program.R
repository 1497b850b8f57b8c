test_that("a program that is not there is asked for", {
  expect_error(private_ate(program = stop("looked for")), "looked for")
  before <- Sys.getenv(c("PRIVATE_ATE", "PATH"))
  on.exit(do.call(Sys.setenv, as.list(before)))
  Sys.setenv(PRIVATE_ATE = "", PATH = "/nowhere")
  expect_error(find_private_ate(), "pip install .", fixed = TRUE, class = "private_ate_absent")
  Sys.setenv(PRIVATE_ATE = "/nowhere/private-ate")
  expect_error(find_private_ate(), "/nowhere/private-ate", class = "private_ate_absent")
})

test_that("an option says where the program is, before the variable", {
  path <- stand_in("exit 0")
  before <- options(private_ate.program = path)
  on.exit(options(before))

  expect_identical(find_private_ate(), path)
})

test_that("the child has no LD_LIBRARY_PATH, and the session keeps its own", {
  before <- Sys.getenv("LD_LIBRARY_PATH", NA)
  Sys.setenv(LD_LIBRARY_PATH = "/somewhere")
  on.exit(if (is.na(before)) Sys.unsetenv("LD_LIBRARY_PATH") else Sys.setenv(LD_LIBRARY_PATH = before))
  program <- stand_in("echo \"error: <${LD_LIBRARY_PATH-none}>\" >&2", "exit 2")

  expect_error(ask(program = program), "<none>")
  expect_identical(Sys.getenv("LD_LIBRARY_PATH"), "/somewhere")
})

test_that("files are the owner's alone while they are there, and are gone after an error", {
  folder <- tempfile()
  dir.create(folder)
  before <- Sys.umask("000")
  on.exit(Sys.umask(before))
  program <- stand_in("echo \"error: $(stat -c %a \"$2\" \"$(dirname \"$2\")\" | tr '\\n' ' ')\" >&2",
                      "exit 2")

  expect_error(ask(program = program, folder = folder), "600 700")
  expect_identical(list.files(folder, all.files = TRUE, no.. = TRUE), character())
  expect_identical(format(Sys.umask()), "0")
})

test_that("an error speaks of arguments, not of flags, and has no call", {
  found <- tryCatch(ask(outcome_bounds = NULL), error = identity)

  expect_s3_class(found, "private_ate_error")
  expect_null(conditionCall(found))
  expect_match(conditionMessage(found), "`outcome_bounds = c(low, high)`", fixed = TRUE)
  expect_false(grepl("--", conditionMessage(found), fixed = TRUE))
})

test_that("a treatment that is missing is refused by its count, without a record", {
  data <- study()
  data$treat[7] <- NA
  found <- tryCatch(ask(data = data), error = conditionMessage)

  expect_match(found, "missing in 1 of 400 rows")
  expect_s3_class(ask(data = data, leave_out_undeclared = TRUE), "private_ate")
})

test_that("a ledger refuses what is beyond its budget, and repeats what it stored", {
  ledger <- tempfile(fileext = ".db")
  system2(find_private_ate(), c("ledger", "create", shQuote(ledger), "--dataset", "clinic", "--epsilon", "1",
                                "--level", "label", "--public", "treat,age"), stdout = FALSE)
  asked <- function(...) {
    private_ate(y ~ treat | age, study(), level = "label", epsilon = 0.6, outcome_bounds = c(0, 40),
                ledger = ledger, dataset = "clinic", ...)
  }
  first <- asked(request_id = "one")

  expect_identical(asked(request_id = "one")$ate, first$ate)
  expect_error(asked(request_id = "two"), class = "private_ate_budget")
})
