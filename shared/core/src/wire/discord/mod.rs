//! discord.
