//! A scripted model that speaks the OpenAI protocol.
