# A row for each effect: the estimate, its interval, and the part of it that noise makes.

plot.private_ate <- function(x, xlab = NULL, main = headline(x), ...) {
  effects <- x$effects
  rows <- nrow(effects)
  places <- rev(seq_len(rows))
  labels <- row_names(effects)
  limits <- range(0, effects$low, effects$high, effects$noise_low, effects$noise_high,
                  effects$estimate, finite = TRUE)
  if (is.null(xlab)) {
    unit <- if (is.null(x$outcome$unit)) "" else paste0(" (", x$outcome$unit, ")")
    xlab <- paste0(effects$outcome[1], unit)
  }
  before <- par(mar = c(4.5, 2 + 0.5 * max(nchar(labels)), 4, 1))
  on.exit(par(before))
  plot.default(
    effects$estimate, places, xlim = limits, ylim = c(0.5, rows + 0.5), type = "n", yaxt = "n",
    xlab = xlab, ylab = "", main = main, ...
  )
  abline(v = 0, lty = 3, col = "grey40")
  axis(2, at = places, labels = labels, las = 1, tick = FALSE)
  segments(effects$low, places, effects$high, places, lwd = 1.5)
  segments(effects$noise_low, places, effects$noise_high, places, lwd = 5, col = "#2a7f9e")
  points(effects$estimate, places, pch = 21, bg = "white", cex = 1.3)
  mtext(x$guarantee, side = 3, line = 0.3, cex = 0.8)
  legend("bottomright", c("interval", "noise alone"), lwd = c(1.5, 5), col = c("black", "#2a7f9e"),
         bty = "n", cex = 0.8)
  invisible(x)
}
