"""Who answers: the engines that fold over rows."""
