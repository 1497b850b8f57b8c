# Five nearest neighbours along a logistic score, both directions; prints seconds, CPU and effect.
suppressMessages(library(MatchIt))
table <- read.csv(commandArgs(trailingOnly = TRUE)[1])
formula <- reformulate(paste0("x", 0:19), "t")
effect <- function(estimand) {
  matched <- matchit(formula, table, method = "nearest", ratio = 5, replace = TRUE,
                     estimand = estimand)
  data <- match.data(matched)
  with(data, weighted.mean(y[t == 1], weights[t == 1]) - weighted.mean(y[t == 0], weights[t == 0]))
}
clock <- system.time({
  share <- mean(table$t)
  value <- share * effect("ATT") + (1 - share) * effect("ATC")
})
cat(sprintf('{"seconds": %.4f, "cpu": %.4f, "megabytes": %.1f, "value": %.6f}\n',
            clock[["elapsed"]], clock[["user.self"]] + clock[["sys.self"]],
            sum(gc()[, 6]), value))
