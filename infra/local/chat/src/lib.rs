//! Discord- and Slack-compatible APIs and the chat page.
