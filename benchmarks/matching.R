# Sekhon's Matching: five nearest neighbours along a logistic score, ties broken at random.
suppressMessages(library(Matching))
table <- read.csv(commandArgs(trailingOnly = TRUE)[1])
formula <- reformulate(paste0("x", 0:19), "t")
clock <- system.time({
  score <- fitted(glm(formula, binomial, table))
  value <- Match(Y = table$y, Tr = table$t, X = score, estimand = "ATE", M = 5, ties = FALSE,
                 version = "fast")$est
})
cat(sprintf('{"seconds": %.4f, "cpu": %.4f, "megabytes": %.1f, "value": %.6f}\n',
            clock[["elapsed"]], clock[["user.self"]] + clock[["sys.self"]],
            sum(gc()[, 6]), value))
