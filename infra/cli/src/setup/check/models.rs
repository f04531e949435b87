//! The models: whether each key is valid, and whether the stack's model has one.

use bobbin_agent::openrouter::{KeyMaker, KeyMakerError};
use bobbin_app::model_keys::{KeyState, ModelProvider, check_key, offered};

use bobbin_core::tenant::keys::Key;

use crate::setup::report::Report;
use crate::target::StackTarget;

pub async fn check(target: &StackTarget, report: &mut Report) {
    let mut keyed = Vec::new();
    for provider in ModelProvider::ALL {
        if one(target, report, provider).await {
            keyed.push(provider.prefix());
        }
    }
    management(target, report).await;
    let base = target.overrides().agents.model_base_url;
    match target.parameter("Model") {
        Some(model) if !base.is_empty() => endpoint(target, report, model, &base).await,
        Some(model) => {
            let prefix = model.split('/').next().unwrap_or_default();
            if !keyed.contains(&prefix) {
                report.wrong(
                    &format!(
                        "Models: the stack's model is {model}, and there is no key for {prefix}"
                    ),
                    &format!(
                        "Give that provider's key, or another model: {}",
                        target.sam_deploy("Model=provider/model")
                    ),
                );
            }
        }
        None if keyed.is_empty() => report.wrong(
            "Models: there is no key for any model",
            "Set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY.",
        ),
        None => {}
    }
}

/// True if there is a key. Whether it is valid goes into the report.
async fn one(target: &StackTarget, report: &mut Report, provider: ModelProvider) -> bool {
    let name = format!("{}_api_key", provider.prefix());
    let Some(found) = target.key(&name).await else {
        return false;
    };
    let source = found.source;
    match check_key(provider, &target.model_api(provider), &found.value).await {
        KeyState::Valid(more) if more.is_empty() => {
            report.right(&format!("{provider}: the key of {source} is valid"));
        }
        KeyState::Valid(more) => {
            report.right(&format!("{provider}: the key of {source} is valid, {more}"));
        }
        KeyState::Restricted => report.note(&format!(
            "{provider}: the key of {source} is valid, but not allowed to describe itself; the first task shows whether it may use the model"
        )),
        KeyState::Refused => report.wrong(
            &format!("{provider}: the key of {source} is refused"),
            &format!("Create a new one: {}.", crate::keys::named(&name).map_or("", |key| key.found)),
        ),
        KeyState::Unclear(why) => report.wrong(
            &format!("{provider}: the key of {source} could not be tried: {why}"),
            "Try again in a moment.",
        ),
    }
    true
}

/// Checks whether model keys with a limit of money can be made.
async fn management(target: &StackTarget, report: &mut Report) {
    let key = Key::OpenRouterManagementKey;
    let Some(found) = target.key(key.name()).await else { return };
    let source = found.source;
    let listed = match KeyMaker::new(&target.key_api(), found.value) {
        Ok(maker) => maker.list().await,
        Err(error) => Err(error.into()),
    };
    match listed {
        Ok(_) if target.key(Key::OpenRouterApiKey.name()).await.is_none() => report.note(&format!(
            "OpenRouter: the management key of {source} is valid; without an OPENROUTER_API_KEY there is no model that its keys could pay"
        )),
        Ok(_) => report.right(&format!(
            "OpenRouter: the management key of {source} is valid: budgets are enforced there"
        )),
        Err(KeyMakerError::Refused) => report.wrong(
            &format!("OpenRouter: the management key of {source} is refused"),
            &format!("Create a new one: {}.", crate::keys::named(key.name()).map_or("", |key| key.found)),
        ),
        Err(KeyMakerError::Failed(why)) => report.wrong(
            &format!("OpenRouter: the management key of {source} could not be tried: {why}"),
            "Try again in a moment.",
        ),
    }
}

/// Checks that a custom endpoint answers and offers the model.
async fn endpoint(target: &StackTarget, report: &mut Report, model: &str, base: &str) {
    let key = target.key("openai_api_key").await;
    let name = model.split_once('/').map_or(model, |(_, name)| name);
    match offered(base, key.as_ref().map(|found| &found.value)).await {
        Ok(models) if models.iter().any(|one| one == name) => {
            report.right(&format!("Models: the stack's endpoint offers {name}"));
        }
        Ok(models) => report.wrong(
            &format!("Models: the stack's endpoint does not offer {name}"),
            &format!("It offers {}.", models.join(", ")),
        ),
        Err(why) => report.note(&format!(
            "Models: the stack's endpoint could not be asked from here ({why}); the sandboxes must reach it, this machine need not"
        )),
    }
}
