//! daytona.
