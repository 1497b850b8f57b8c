# The main function: a formula, a data frame and what is declared become a release.

private_ate <- function(
    formula, data, level, epsilon,
    outcome_bounds = NULL, binary_outcome = NULL, event_label = NULL, missing_outcomes = NULL,
    horizon = NULL, bins = NULL, censoring_by = NULL, quantity = NULL, bounds = NULL, categories = NULL, domain = NULL,
    treated = NULL, control = NULL, arms = NULL, reference = NULL, treatment_bins = NULL,
    method = "auto", options = NULL, estimand = "ate", among = NULL, target = NULL,
    neighbors = NULL, design = NULL, probability = NULL, by = NULL, overall = FALSE,
    weights = NULL, confidence = 0.95, means = FALSE, rows_per_person = 1, person = NULL, outcome_sd = NULL,
    leave_out_undeclared = FALSE, ledger = NULL, dataset = NULL, dataset_version = NULL,
    request_id = NULL, analyst = NULL, ledger_head = NULL, out = NULL, report = NULL, diagnostics = NULL,
    seed = NULL, flags = NULL, transfer = c("auto", "csv", "arrow"), folder = tempdir(),
    program = find_private_ate()) {
  force(program)
  transfer <- chosen_transfer(match.arg(transfer))
  if (!is.data.frame(data)) refuse("`data` is a data frame")
  level <- one_of("level", level, c("label", "sample"))
  asked <- parse_formula(formula, names(data))
  if (!is.null(asked$covariates)) {
    special <- c(weights, person, if (is.character(probability)) probability)
    asked$covariates <- expand_dot(asked, names(data), special)
  }
  declared <- list(
    outcome_bounds = outcome_bounds, binary_outcome = binary_outcome, event_label = event_label, bounds = bounds,
    categories = categories, treated = treated, control = control, arms = arms,
    treatment_bins = treatment_bins, horizon = horizon, bins = bins, censoring_by = censoring_by
  )
  takes_labels <- !is.null(event_label) || isTRUE(binary_outcome) || !is.null(domain)
  used <- columns_in_use(asked, data, by, weights, probability, domain, person)
  columns <- lapply(stats::setNames(nm = used), function(name) {
    plain_column(data[[name]], name, role_of(name, asked), takes_labels)
  })
  if (is.null(domain)) {
    text <- domain_text(asked, columns, declared, weights, level)
  } else {
    refuse_two_declarations(declared)
    refuse_numbers_as_labels(columns, asked, domain, transfer, level)
  }

  place <- private_folder(folder)
  on.exit(unlink(place, recursive = TRUE, force = TRUE), add = TRUE)
  if (is.null(domain)) {
    domain <- write_text(text, file.path(place, "domain.toml"))
  }
  file <- write_columns(columns, place, transfer)
  answer <- file.path(place, "release.json")
  arguments <- c(
    "estimate", file, "--level", level, "--epsilon", number_text(epsilon, "epsilon"),
    "--domain", path.expand(domain), "--out", answer, "--json", "--quiet",
    if (length(asked$covariates)) flag("--covariates", joined(asked$covariates, "covariates")),
    flag("--treatment", asked$treatment), if (is.null(asked$event)) flag("--outcome", asked$outcome),
    flag("--quantity", quantity),
    flag("--missing-outcomes", missing_outcomes), flag("--reference", reference),
    flag("--method", method), option_flags(options), flag("--estimand", estimand),
    flag("--among", among), flag("--target", target), flag("--neighbors", neighbors),
    flag("--design", design), flag("--probability", probability),
    if (length(by)) flag("--by", joined(by, "by")), if (isTRUE(overall)) "--overall",
    weight_flags(weights, bounds), flag("--confidence", if (is.null(confidence)) "none" else confidence),
    if (isTRUE(means)) "--means",
    flag("--rows-per-person", rows_per_person), flag("--person", person), flag("--outcome-sd", outcome_sd),
    if (isTRUE(leave_out_undeclared)) "--leave-out-undeclared",
    flag("--ledger", expanded(ledger)), flag("--dataset", dataset),
    flag("--dataset-version", dataset_version), flag("--request-id", request_id),
    flag("--analyst", analyst), flag("--head", ledger_head), flag("--report", expanded(report)),
    flag("--diagnostics", expanded(diagnostics)), flag("--seed", seed), as.character(flags)
  )
  run_program(program, arguments, place)
  release <- read_release(answer, asked)
  if (!is.null(out)) write_release(release, out)
  release
}

# Every error here has a class of its own and no call: a call can hold the records.
refuse <- function(..., class = NULL) {
  classes <- c(class, "private_ate_error", "error", "condition")
  stop(structure(class = classes, list(message = paste0(...), call = NULL)))
}

one_of <- function(name, value, known) {
  if (!is.character(value) || length(value) != 1 || !value %in% known) {
    refuse("`", name, "` is one of ", toString(dQuote(known, FALSE)))
  }
  value
}

# What a flag says, or nothing where it was not given.
flag <- function(name, value) {
  if (is.null(value)) return(NULL)
  # One word, so that a value that begins with a dash is no flag.
  paste0(name, "=", number_text(value, gsub("-", "_", sub("^--", "", name))))
}

number_text <- function(value, name) {
  if (length(value) != 1 || is.na(value) || !is.atomic(value)) {
    refuse("`", name, "` is one value")
  }
  if (is.numeric(value)) sprintf("%.15g", value) else as.character(value)
}

expanded <- function(path) {
  if (is.null(path) || grepl("^[A-Za-z]+://", path)) path else path.expand(path)
}

option_flags <- function(options) {
  if (!length(options)) return(NULL)
  if (is.null(names(options)) || !all(nzchar(names(options)))) {
    refuse("`options` is a named list, such as list(shares = 0.2)")
  }
  texts <- vapply(names(options), function(name) {
    paste0(name, "=", number_text(options[[name]], name))
  }, "")
  as.vector(rbind("--set", texts))
}

weight_flags <- function(weights, bounds) {
  if (is.null(weights)) return(NULL)
  high <- as.list(bounds)[[weights]]
  limit <- if (!is.null(high)) {
    paste0("--bounds=", weights, "=", paste(sprintf("%.15g", pair(high, weights)), collapse = ":"))
  }
  c(flag("--weights", weights), limit)
}

joined <- function(names, what) {
  if (any(grepl("[,\n\r]", names)) || identical(names, "all")) {
    refuse("`", what, "` names a column with a comma or a line end in its name, or called all; rename it")
  }
  paste(names, collapse = ",")
}
