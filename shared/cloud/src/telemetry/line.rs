//! One line of the log: the fields of the spans around it, then its own, in one flat object.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Writes events as flat JSON objects.
#[derive(Debug)]
pub(super) struct JsonLine;

impl<S> FormatEvent<S, JsonFields> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields(Map::new());
        for span in context.event_scope().into_iter().flatten() {
            let extensions = span.extensions();
            let said = extensions.get::<FormattedFields<JsonFields>>();
            let said = said.map_or("", |said| said.fields.as_str());
            let Ok(said) = serde_json::from_str::<Map<String, Value>>(said) else {
                continue;
            };
            // From the inside out: an inner span takes precedence.
            for (name, value) in said {
                fields.0.entry(name).or_insert(value);
            }
        }
        event.record(&mut fields);
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let metadata = event.metadata();
        for (name, value) in [
            ("timestamp", time.as_str()),
            ("level", metadata.level().as_str()),
            ("target", metadata.target()),
        ] {
            fields.0.insert(name.to_owned(), value.into());
        }
        writeln!(writer, "{}", Value::Object(fields.0))
    }
}

struct Fields(Map<String, Value>);

impl Fields {
    fn set(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex, PoisonError};

    use serde_json::json;
    use tracing_subscriber::fmt::MakeWriter;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Written {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    /// The lines without the time, which must be present.
    fn lines(log: impl FnOnce()) -> Vec<Value> {
        let written = Written::default();
        let layer = tracing_subscriber::fmt::layer()
            .fmt_fields(JsonFields::new())
            .event_format(JsonLine)
            .with_writer(written.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        let all = written.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&all);
        let read = |line: &str| {
            let mut line: Value = serde_json::from_str(line).expect("JSON");
            let time = line["timestamp"].take();
            assert!(time.as_str().is_some_and(|time| time.ends_with('Z')));
            line
        };
        text.lines().map(read).collect()
    }

    #[test]
    fn event_fields_override_span_fields() {
        let told = lines(|| {
            let span = tracing::error_span!("message", correlation_id = "outer", receive = 2_u32);
            let _outer = span.enter();
            tracing::info!(event = "a.b", took_ms = Some(5_u64), "it is \"done\"\nnow");
            tracing::warn!(event = "c.d", correlation_id = "own", error = %"x", "words");
        });
        let target = module_path!();
        assert_eq!(
            told,
            [
                json!({"timestamp": null, "level": "INFO", "target": target, "event": "a.b", "correlation_id": "outer",
                    "receive": 2, "took_ms": 5, "message": "it is \"done\"\nnow"}),
                json!({"timestamp": null, "level": "WARN", "target": target, "event": "c.d", "correlation_id": "own",
                    "receive": 2, "error": "x", "message": "words"}),
            ]
        );
    }
}
