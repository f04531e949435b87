//! Text: answers cut at the platforms' limits.
