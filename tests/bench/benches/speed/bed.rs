//! What programs are measured on: a cloud on loopback, an application that signs commands, an environment of a function.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use crate::cloud::{ACCESS_KEY_ID, Cloud, REGION, SECRET_ACCESS_KEY};
use crate::command::Application;
use crate::figures::Report;
use crate::process::Program;
use crate::programs;

/// The Node function.
pub const PEER: &str = "peer";

/// Ends with its value.
pub struct Bed {
    /// Where requests to AWS go.
    pub cloud: Cloud,
    /// Whose commands come.
    pub application: Application,
    /// What each program finds in its environment.
    environment: Vec<(String, String)>,
    folder: TempDir,
}

impl Bed {
    /// A new one.
    ///
    /// # Errors
    /// A sentence with what failed.
    pub fn new() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let secret = json!({"stack_key": "a key of the bench, as long as the template makes one"});
        let cloud = Cloud::start(folder.path(), &secret).map_err(|e| e.to_string())?;
        let application = Application::default();
        Ok(Self {
            environment: environment(&cloud, &application),
            cloud,
            application,
            folder,
        })
    }

    /// An executable, with the environment of a function.
    #[must_use]
    pub fn program(&self, name: &str, executable: PathBuf) -> Program {
        Program {
            name: name.to_owned(),
            executable,
            arguments: Vec::new(),
            environment: self.environment.clone(),
        }
    }

    /// The peer in Node, if there is Node.
    ///
    /// # Errors
    /// A sentence, if it cannot be built.
    pub fn peer(&self, report: &mut Report) -> Result<Option<Program>, String> {
        let Some((bundle, version)) = programs::peer()? else {
            return Ok(None);
        };
        let condition = format!("peer: Node {version}");
        if !report.conditions.contains(&condition) {
            report.conditions.push(condition);
        }
        Ok(Some(Program {
            arguments: vec![bundle.display().to_string()],
            ..self.program(PEER, programs::on_path("node")?)
        }))
    }

    /// Other builds of the worker and the sweeper, if the environment names a folder with them.
    #[must_use]
    pub fn functions_beside(&self) -> Vec<Program> {
        let folder = env::var_os("BOBBIN_BENCH_BESIDE_FUNCTIONS").map(PathBuf::from);
        let found = folder.into_iter().flat_map(|folder| {
            ["worker", "sweeper"].map(|name| self.program(&beside(name), folder.join(name)))
        });
        found.collect()
    }

    /// Another build of ingress, if the environment names one.
    ///
    /// # Errors
    /// A sentence, if there is nothing that it can trust.
    pub fn beside(&self) -> Result<Option<Program>, String> {
        let Some(executable) = env::var_os("BOBBIN_BENCH_BESIDE") else {
            return Ok(None);
        };
        let mut program = self.program("beside", executable.into());
        // Builds before the first bench trusted the machine's roots.
        let roots = all_roots(&self.cloud, self.folder.path())?;
        let roots = ("SSL_CERT_FILE".to_owned(), roots.display().to_string());
        program.environment.push(roots);
        Ok(Some(program))
    }
}

/// What another build of a program is called.
#[must_use]
pub fn beside(name: &str) -> String {
    format!("{name} beside")
}

/// The environment of a function of the stack, as the template and Lambda set it.
fn environment(cloud: &Cloud, application: &Application) -> Vec<(String, String)> {
    let endpoint = cloud.endpoint();
    let authority = cloud.authority().display().to_string();
    let queue = |name: &str| format!("{endpoint}/123456789012/{name}");
    [
        ("AWS_LAMBDA_FUNCTION_NAME", "bench"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
        ("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/bench"),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "bench"),
        ("AWS_REGION", REGION),
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID),
        ("AWS_SECRET_ACCESS_KEY", SECRET_ACCESS_KEY),
        ("AWS_SESSION_TOKEN", "IQoJb3JpZ2luX2VjEXAMPLETOKEN"),
        ("AWS_ENDPOINT_URL", &endpoint),
        // How each is told whom to trust on loopback.
        ("AWS_CA_BUNDLE", &authority),
        ("NODE_EXTRA_CA_CERTS", &authority),
        // The peer need not write a warning about the age of its Node.
        ("AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED", "true"),
        ("PATH", "/usr/bin:/bin"),
        ("STACK", "bench"),
        ("TABLE", "bench-table"),
        ("MESSAGES_QUEUE_URL", &queue("messages.fifo")),
        ("CONTROL_QUEUE_URL", &queue("control.fifo")),
        ("MESSAGES_DEAD_QUEUE_URL", &queue("messages-dead.fifo")),
        ("CONTROL_DEAD_QUEUE_URL", &queue("control-dead.fifo")),
        ("INGRESS_SECRET_ID", "ingress-secret"),
        ("WORKER_SECRET_ID", "worker-secret"),
        ("PROVIDER_SECRET_ID", "provider-secret"),
        ("STACK_KEY_ID", "stack-key"),
        ("DISCORD_API", "https://discord.com/api/v10"),
        ("DISCORD_APPLICATION_ID", application.id()),
        ("DISCORD_PUBLIC_KEY", &application.public_key()),
        ("SLACK_API", "https://slack.com/api"),
        ("DAYTONA_API", "https://app.daytona.io/api"),
        ("MODEL", "anthropic/claude-sonnet-4-5"),
        ("ALLOWED_GUILDS", application.guild()),
        ("LOG_LEVEL", "info"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

/// The machine's roots and the cloud's, in one file.
fn all_roots(cloud: &Cloud, folder: &Path) -> Result<PathBuf, String> {
    let read = |path: &Path| fs::read_to_string(path).map_err(|e| e.to_string());
    let roots = read(Path::new("/etc/ssl/certs/ca-certificates.crt")).unwrap_or_default();
    let file = folder.join("roots.pem");
    let text = format!("{roots}\n{}", read(cloud.authority())?);
    fs::write(&file, text).map_err(|e| e.to_string())?;
    Ok(file)
}
