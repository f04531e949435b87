//! The scripted model as a separate program.

use std::process::ExitCode;

use bobbin_local_model::Model;
use tokio::signal::unix::{SignalKind, signal};

const HELP: &str = "\
A model that does what the last user message says, one action per line.
It speaks OpenAI's chat completions and responses and Anthropic's messages on the loopback interface.

Usage: scripted-model [--port N]

  --port N   listen on this port (default: a free one)
  --help     show this text

Paths: GET /v1/models, POST /v1/chat/completions, /v1/messages, /v1/responses, GET /calls (the recorded requests and answers).

Actions:
  echo: TEXT                            answer TEXT
  slow: SECONDS TEXT                    stream TEXT word by word over that many seconds
  run: COMMAND                          call the bash tool
  write: PATH TEXT                      call the write tool (\\n in TEXT is a newline)
  ask: COMMAND                          call the bash tool so that OpenCode asks for permission
  question: TEXT | OPTION | OPTION      call the question tool
  long: CHARACTERS                      answer that many characters
  fail: STATUS                          answer with that HTTP status (400 to 599)
  cut                                   end the stream without a finish reason
  plan: [x] TASK | [>] TASK | TASK      write the plan with the todowrite tool
  look                                  say which images came with the message
";

#[tokio::main]
async fn main() -> ExitCode {
    let port = match parse_arguments(std::env::args().skip(1)) {
        Ok(Some(port)) => port,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("scripted-model: {message}; try --help");
            return ExitCode::from(2);
        }
    };
    match run(port).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scripted-model: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(port: u16) -> Result<(), Box<dyn std::error::Error>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let model = Model::start(port).await?;
    println!("scripted model listening on {}", model.base_url());
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminate.recv() => {}
    }
    model.stop().await;
    Ok(())
}

/// The port to listen on; `None` if only help is wanted.
fn parse_arguments(arguments: impl Iterator<Item = String>) -> Result<Option<u16>, String> {
    let mut arguments = arguments;
    let mut port = 0;
    while let Some(argument) = arguments.next() {
        let value = match argument.as_str() {
            "--help" | "-h" => return Ok(None),
            "--port" => arguments.next().ok_or("--port needs a number")?,
            other => other
                .strip_prefix("--port=")
                .ok_or(format!("unknown argument {other:?}"))?
                .to_owned(),
        };
        port = value.parse().map_err(|_| format!("{value:?} is not a port from 0 to 65535"))?;
    }
    Ok(Some(port))
}
