# A release as R shows it. It holds what the program released and nothing of the data frame: not
# the call, not the formula's environment.

read_release <- function(path, asked) {
  json <- paste(readLines(path, warn = FALSE, encoding = "UTF-8"), collapse = "\n")
  found <- jsonlite::fromJSON(json, simplifyDataFrame = FALSE, simplifyMatrix = FALSE)
  found$effects <- effects_frame(found$effects)
  found$formula <- asked$text
  found$json <- json
  structure(found, class = "private_ate")
}

effects_frame <- function(rows) {
  text <- function(key) vapply(rows, function(row) as.character(or(row[[key]], NA)), "")
  number <- function(key, place = 1) {
    vapply(rows, function(row) as.numeric(or(row[[key]], c(NA, NA))[place]), 0)
  }
  data.frame(
    outcome = text("outcome"), subgroup = text("subgroup"), arm = text("arm"),
    against = text("against"), estimand = text("estimand"), estimate = number("estimate"),
    low = number("interval"), high = number("interval", 2),
    simultaneous_low = number("simultaneous"), simultaneous_high = number("simultaneous", 2),
    noise_low = number("noise_interval"), noise_high = number("noise_interval", 2)
  )
}

or <- function(value, other) if (is.null(value)) other else value

write_release <- function(x, path) {
  stopifnot(inherits(x, "private_ate"))
  connection <- file(path.expand(path), "wb")
  on.exit(close(connection))
  writeLines(enc2utf8(x$json), connection, sep = "\n", useBytes = TRUE)
  invisible(path)
}

as.data.frame.private_ate <- function(x, row.names = NULL, optional = FALSE, ...) x$effects

coef.private_ate <- function(object, ...) {
  stats::setNames(object$effects$estimate, row_names(object$effects))
}

confint.private_ate <- function(object, parm, level = NULL, ...) {
  released <- object$settings$confidence
  if (!is.null(level) && !isTRUE(all.equal(level, released))) {
    refuse("the release has intervals of ", or(released, "no"), " coverage; others need another release")
  }
  limits <- as.matrix(object$effects[c("low", "high")])
  dimnames(limits) <- list(row_names(object$effects), c("low", "high"))
  if (missing(parm)) limits else limits[parm, , drop = FALSE]
}

row_names <- function(effects) {
  contrast <- paste(effects$arm, "-", effects$against)
  several <- length(unique(effects$outcome)) > 1
  paste0(
    if (several) paste0(effects$outcome, ": "), contrast,
    ifelse(is.na(effects$subgroup), "", paste0(", ", effects$subgroup))
  )
}

headline <- function(x) {
  names <- c(
    ate = "Average treatment effect", att = "Average treatment effect on the treated",
    atc = "Average treatment effect on the controls",
    ato = "Average treatment effect in the overlap population",
    difference = "Difference in means, not adjusted for covariates"
  )
  unname(if (x$estimand %in% names(names)) names[x$estimand] else paste("Treatment effect,", x$estimand))
}

# As many decimals as two digits of the half-width have.
decimals <- function(effects) {
  half <- (effects$high - effects$low) / 2
  half[is.na(half)] <- ((effects$noise_high - effects$noise_low) / 2)[is.na(half)]
  half <- min(half[is.finite(half) & half > 0], Inf)
  if (!is.finite(half)) return(3)
  min(max(0, 1 - floor(log10(half))), 12)
}

effects_text <- function(x) {
  effects <- x$effects
  digits <- decimals(effects)
  number <- function(values) ifelse(is.na(values), "", formatC(values, digits = digits, format = "f"))
  between <- function(low, high) {
    ifelse(is.na(low), "none", paste0("[", number(low), ", ", number(high), "]"))
  }
  percent <- if (is.null(x$settings$confidence)) "" else paste0(100 * x$settings$confidence, "% ")
  shown <- data.frame(
    estimate = number(effects$estimate), interval = between(effects$low, effects$high),
    third = if (nrow(effects) > 1) {
      between(effects$simultaneous_low, effects$simultaneous_high)
    } else {
      between(effects$noise_low, effects$noise_high)
    }
  )
  third <- if (nrow(effects) > 1) "all at once" else "noise interval"
  names(shown) <- c("estimate", paste0(percent, "interval"), paste0(percent, third))
  rownames(shown) <- row_names(effects)
  shown
}

# Means of both arms and what follows of a binary outcome; intervals are in `private-ate report`.
ratios_text <- function(x) {
  settings <- x$settings
  number <- function(value) formatC(value, digits = 3, format = "fg", flag = "#")
  lines <- c(
    if (length(settings$means) == 2 && !is.null(settings$means$treated)) {
      paste0("means: ", number(settings$means$treated), " if treated, ",
             number(settings$means$control), " if not")
    },
    if (!is.null(settings$risk_ratio)) paste("risk ratio:", number(settings$risk_ratio)),
    if (!is.null(settings$odds_ratio)) paste("odds ratio:", number(settings$odds_ratio))
  )
  effect <- x$effects$estimate
  if (isTRUE(settings$binary_outcome) && length(effect) == 1 && x$estimand != "difference" && effect != 0) {
    lines <- c(lines, paste("needed to treat:", number(1 / abs(effect)), "for one event",
                            if (effect > 0) "more" else "less"))
  }
  lines
}

print.private_ate <- function(x, ...) {
  for (text in x$warnings) cat(strwrap(paste("WARNING:", text)), sep = "\n")
  unit <- x$outcome$unit
  cat(headline(x), if (!is.null(unit)) paste0(" (", unit, ")"), "\n", sep = "")
  cat(x$formula, "\n\n", sep = "")
  print(effects_text(x), right = FALSE)
  ratios <- ratios_text(x)
  if (length(ratios)) cat("\n", paste0(ratios, "\n"), sep = "")
  cat("\nguarantee: ", x$guarantee, "\n", sep = "")
  cat("method: ", x$method, ", n = ", format(x$n, big.mark = ","), "\n", sep = "")
  if (!is.null(x$missing$outcome)) {
    cat(strwrap(paste("missing outcomes:", x$missing$outcome), exdent = 2), sep = "\n")
  }
  invisible(x)
}

summary.private_ate <- function(object, ...) {
  settings <- object$settings
  balance <- settings$balance
  structure(class = "summary.private_ate", list(
    release = object,
    balance = if (length(balance)) {
      data.frame(
        before = vapply(balance, function(pair) abs(pair[[1]]), 0),
        after = vapply(balance, function(pair) abs(pair[[2]]), 0)
      )
    },
    budget = unlist(settings$budget),
    arms = unlist(settings$arms),
    notes = c(settings$notes, settings$interval_covers),
    not_protected = object$not_protected
  ))
}

print.summary.private_ate <- function(x, ...) {
  print(x$release)
  said <- function(title, texts) {
    if (!length(texts)) return(invisible())
    cat("\n", title, ":\n", sep = "")
    for (text in texts) cat(strwrap(text, initial = "- ", prefix = "  ", exdent = 0), sep = "\n")
  }
  if (length(x$arms)) {
    cat("\nunits: ", paste(format(x$arms, big.mark = ",", trim = TRUE), names(x$arms), collapse = ", "),
        "\n", sep = "")
  }
  if (!is.null(x$balance)) {
    cat("\nstandardised differences, before and after weighting:\n")
    print(round(x$balance, 3))
  }
  if (length(x$budget)) {
    cat("\nepsilon by step: ",
        paste0(names(x$budget), " ", format(x$budget, trim = TRUE), collapse = ", "), "\n", sep = "")
  }
  said("neighbours", x$release$adjacency)
  said("what the interval covers", x$release$settings$interval_covers)
  said("notes", x$release$settings$notes)
  said("not protected", x$not_protected)
  invisible(x)
}
