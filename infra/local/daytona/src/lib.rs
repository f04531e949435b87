//! A Daytona-compatible provider whose sandboxes are directories.
