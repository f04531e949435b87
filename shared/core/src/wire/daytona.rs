//! Daytona.
