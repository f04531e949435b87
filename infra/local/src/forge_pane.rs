//! The forge, as the page's pane shows and uses it.

use std::sync::Arc;

use bobbin_local_chat::{ForgePane, PaneAnswer, PaneRequest};
use bobbin_local_forge::LocalForge;
use futures::future::FutureExt;
use serde::Serialize;
use serde_json::{Value, json};

/// The stack's own forge. What is pressed is done in its administrator's name.
pub struct LaptopForge(pub Arc<LocalForge>);

fn shown(view: impl Serialize) -> Result<Value, String> {
    serde_json::to_value(view).map_err(|error| error.to_string())
}

impl LaptopForge {
    fn opened(&self, repository: &str, number: Option<u64>) -> Result<Value, String> {
        let path = match number {
            Some(number) => format!("/{repository}/pull/{number}"),
            None => format!("/{repository}"),
        };
        let url = self.0.sign_in_url(&self.0.identity().administrator, &path);
        Ok(json!({"url": url.ok_or("the forge has no administrator")?}))
    }
}

impl ForgePane for LaptopForge {
    fn repositories(&self) -> PaneAnswer<'_> {
        async { shown(self.0.repositories().await?) }.boxed()
    }

    fn pull_request(&self, repository: String, number: u64) -> PaneAnswer<'_> {
        async move { shown(self.0.pull_request(&repository, number).await?) }.boxed()
    }

    fn act(&self, wish: PaneRequest) -> PaneAnswer<'_> {
        let forge = &self.0;
        async move {
            match wish {
                PaneRequest::Create { name, private } => {
                    forge.create_repository(&name, private).await?;
                    let owner = forge.identity().organization;
                    return Ok(json!({"repository": format!("{owner}/{name}")}));
                }
                PaneRequest::Ready { repository, number } => {
                    forge.mark_ready(&repository, number).await?;
                }
                PaneRequest::Merge { repository, number, seen_sha } => {
                    forge.merge(&repository, number, Some(seen_sha)).await?;
                }
                PaneRequest::Close { repository, number } => {
                    forge.close(&repository, number).await?;
                }
                PaneRequest::Open { repository, number } => {
                    return self.opened(&repository, number);
                }
            }
            Ok(json!({}))
        }
        .boxed()
    }
}
