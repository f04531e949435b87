//! Routes requests, and authenticates callers.

use bobbin_app::keyed::KeyedProviders;
use bobbin_cloud::aws::Aws;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::config::Config;
use bobbin_cloud::queue::Queues;
use bobbin_cloud::secrets::CachedSecret;
use bobbin_cloud::store::Store;
use bobbin_core::base::ids::SandboxKey;
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_core::records::tool_sandbox;
use bobbin_core::shown::tools::CALLS_MAX;
use bobbin_core::tenant::keys::Key;
use bobbin_core::tokens::bearer::Bearer;
use bobbin_mcp::RpcAnswer;
use lambda_http::{Body, Request, RequestExt as _, Response};
use serde_json::json;

use crate::place::RecordedSandbox;

/// Longest time for reading the stack's key.
const READ_MS_MAX: u64 = 5_000;
/// Path of the protocol's endpoint.
const PATH: &str = "/mcp";

/// Everything that an answer needs.
pub struct Router {
    config: Config,
    store: Store,
    queues: Queues,
    providers: KeyedProviders,
    key: CachedSecret,
}

/// A request refused before it reaches the protocol.
struct RefusedRequest {
    status: u16,
    why: String,
}

impl Router {
    /// From configuration.
    ///
    /// # Errors
    /// A sentence that names the parameter or variable that is wrong.
    pub fn new(config: Config, aws: &Aws) -> Result<Self, String> {
        Ok(Self {
            store: Store::new(aws, &config.table),
            queues: Queues::new(aws, &config),
            providers: KeyedProviders::new(aws, &config, config.limits.tenant.secrets_ms)?,
            key: CachedSecret::named_by("STACK_KEY_ID", aws, &config, READ_MS_MAX)?,
            config,
        })
    }

    /// Always returns an answer.
    pub async fn answer(&self, request: &Request) -> Response<Body> {
        // A browser page has no business here (Model Context Protocol, "Streamable HTTP", security warning).
        if request.headers().contains_key("origin") {
            return self.refuse(&RefusedRequest {
                status: 403,
                why: "Requests from web pages are not accepted.".to_owned(),
            });
        }
        match (request.method().as_str(), request.raw_http_path()) {
            ("GET" | "HEAD", "/health") => {
                let health = json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")});
                responded(200, Some(health.to_string()), None)
            }
            ("POST", PATH) => match self.spoken(request).await {
                Ok(answer) => responded(answer.status, answer.body, answer.session.as_deref()),
                Err(refused) => self.refuse(&refused),
            },
            // No stream is opened from here, and there is no session to end.
            (_, PATH) => self.refuse(&RefusedRequest {
                status: 405,
                why: "Only POST is accepted here.".to_owned(),
            }),
            _ => self.refuse(&RefusedRequest {
                status: 404,
                why: format!("Nothing is here. The tools are at {PATH}."),
            }),
        }
    }

    async fn spoken(&self, request: &Request) -> Result<RpcAnswer, RefusedRequest> {
        let (bearer, record) = self.admitted(request).await?;
        let begun = self.store.begin_call(&bearer.sandbox, now_ms()).await;
        let Some(held) = begun.map_err(|error| later(error.to_string()))? else {
            return Err(RefusedRequest {
                status: 429,
                why: format!(
                    "{CALLS_MAX} calls with this bearer are already running: call again when one of them has ended."
                ),
            });
        };
        let answered = self.answered(request, bearer.sandbox, record).await;
        if let Err(error) = self.store.end_call(&held).await {
            tracing::warn!(event = "tools.held", %error, "the slot of a finished call could not be freed: it counts until it expires");
        }
        answered
    }

    async fn answered(
        &self,
        request: &Request,
        sandbox: SandboxKey,
        record: SandboxRecord,
    ) -> Result<RpcAnswer, RefusedRequest> {
        let context = request.lambda_context_ref();
        let place = self.place(sandbox, record).await?;
        let asked = bobbin_mcp::RpcRequest {
            body: request.body().as_ref(),
            session: header(request, "mcp-session-id"),
            version: header(request, "mcp-protocol-version"),
            nonce: context.map_or("", |context| &context.request_id),
        };
        Ok(bobbin_mcp::answer(&asked, &place).await)
    }

    /// The sandbox in which the tools work: the bearer's, or the one made for its agent.
    async fn place(
        &self,
        key: SandboxKey,
        record: SandboxRecord,
    ) -> Result<RecordedSandbox<'_>, RefusedRequest> {
        let (key, record, agent) = if record.works_elsewhere() {
            let tools = tool_sandbox::tools_of(&key);
            let there = self.record(&tools).await?.unwrap_or_default();
            (tools, there, Some((key, record)))
        } else {
            (key, record, None)
        };
        Ok(RecordedSandbox {
            config: &self.config,
            queues: &self.queues,
            providers: &self.providers,
            key,
            record,
            agent,
        })
    }

    async fn record(&self, key: &SandboxKey) -> Result<Option<SandboxRecord>, RefusedRequest> {
        let read = self.store.sandbox_record(key).await;
        read.map_err(|error| later(error.to_string()))
    }

    /// The bearer whose tools may be used, and that sandbox's record.
    async fn admitted(&self, request: &Request) -> Result<(Bearer, SandboxRecord), RefusedRequest> {
        let refused = |why: &str| RefusedRequest { status: 401, why: why.to_owned() };
        let said = header(request, "authorization").unwrap_or_default();
        let text = said
            .split_once(' ')
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, text)| text.trim())
            .ok_or_else(|| refused("No bearer was sent. `bobbin sandbox tools NAME` shows it."))?;
        let key = self.key.known(now_ms()).await.map_err(later)?;
        let bearer = Bearer::read(key.of(Key::StackKey).expose(), text)
            .ok_or_else(|| refused("This bearer does not belong to this stack."))?;
        let record = self.record(&bearer.sandbox).await?;
        let record =
            record.ok_or_else(|| refused("The sandbox of this bearer no longer exists."))?;
        if record.generation != bearer.generation {
            return Err(refused(&format!(
                "This bearer is for generation {} of its sandbox, but the sandbox was created again and is generation {} now. `bobbin sandbox tools NAME` shows the new bearer.",
                bearer.generation, record.generation
            )));
        }
        Ok((bearer, record))
    }

    fn refuse(&self, refused: &RefusedRequest) -> Response<Body> {
        let RefusedRequest { status, why } = refused;
        tracing::info!(event = "tools.refused", status, "{why}");
        responded(*status, Some(json!({"error": why}).to_string()), None)
    }
}

const fn later(why: String) -> RefusedRequest {
    RefusedRequest { status: 503, why }
}

fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request.headers().get(name)?.to_str().ok()
}

fn responded(status: u16, body: Option<String>, session: Option<&str>) -> Response<Body> {
    let mut response = Response::builder().status(status);
    if body.is_some() {
        response = response.header("content-type", "application/json");
    }
    if let Some(session) = session {
        response = response.header("mcp-session-id", session);
    }
    match status {
        401 => response = response.header("www-authenticate", "Bearer error=\"invalid_token\""),
        405 => response = response.header("allow", "POST"),
        _ => {}
    }
    let body = body.map_or(Body::Empty, Body::from);
    response.body(body).unwrap_or_else(|_| Response::new(Body::Empty))
}
