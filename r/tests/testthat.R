library(testthat)
library(privateATE)

test_check("privateATE")
