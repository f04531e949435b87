//! AWS's Rust SDK over the life of everything that Bobbin uses, with what was on the wire beneath it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
use aws_sdk_dynamodb::operation::RequestId as _;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, ConditionCheck, KeySchemaElement, KeyType,
    KeysAndAttributes, Put, ReturnValuesOnConditionCheckFailure, ScalarAttributeType,
    TransactWriteItem,
};
use aws_sdk_scheduler::types::{
    ActionAfterCompletion, FlexibleTimeWindow, FlexibleTimeWindowMode, ScheduleState,
    SqsParameters, Target,
};
use aws_sdk_sqs::config::interceptors::BeforeDeserializationInterceptorContextRef;
use aws_sdk_sqs::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_sqs::error::BoxError;
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, QueueAttributeName};

use crate::support::{Stack, sdk_config};

/// Sees each raw answer before the SDK reads it.
#[derive(Clone, Debug, Default)]
struct Wire {
    /// Operations that were answered without a body.
    empty: Arc<Mutex<BTreeSet<String>>>,
    answers: Arc<Mutex<usize>>,
}

impl Intercept for Wire {
    fn name(&self) -> &'static str {
        "wire"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let answer = context.response();
        let id = answer.headers().get("x-amzn-requestid").unwrap_or_default();
        assert!(!id.is_empty(), "an answer without a request id: {answer:?}");
        *self.answers.lock().unwrap() += 1;
        if answer.headers().get("content-length") == Some("0") {
            let metadata = config.load::<aws_smithy_runtime_api::client::orchestrator::Metadata>();
            let name = metadata.unwrap().name().to_owned();
            self.empty.lock().unwrap().insert(name);
        }
        Ok(())
    }
}

macro_rules! client {
    ($sdk:ident, $stack:expr, $wire:expr) => {
        $sdk::Client::from_conf(
            sdk_config!($sdk, $stack.engine.endpoint()).interceptor($wire.clone()).build(),
        )
    };
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

fn number(value: u32) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

#[tokio::test]
async fn rust_sdk_handles_messages() {
    let (stack, wire) = (Stack::start().await, Wire::default());
    let sqs = client!(aws_sdk_sqs, stack, wire);
    let url = stack.fifo("rust.fifo", &[(QueueAttributeName::VisibilityTimeout, "30")]).await;
    for body in ["one", "two"] {
        let send = sqs.send_message().queue_url(&url).message_group_id("g");
        let sent = send.message_deduplication_id(body).message_body(body).send().await.unwrap();
        assert!(sent.request_id().is_some());
    }
    let receive = sqs.receive_message().queue_url(&url).max_number_of_messages(10);
    let taken = receive.send().await.unwrap().messages.unwrap();
    let [one, two] = &taken[..] else { panic!("{taken:?}") };
    let change = sqs.change_message_visibility().queue_url(&url).visibility_timeout(60);
    change.receipt_handle(one.receipt_handle().unwrap()).send().await.unwrap();
    let delete = sqs.delete_message().queue_url(&url);
    delete.receipt_handle(one.receipt_handle().unwrap()).send().await.unwrap();
    let entry = DeleteMessageBatchRequestEntry::builder().id("two");
    let entry = entry.receipt_handle(two.receipt_handle().unwrap()).build().unwrap();
    let batch = sqs.delete_message_batch().queue_url(&url).entries(entry).send().await.unwrap();
    assert_eq!((batch.successful().len(), batch.failed().len()), (1, 0));
    assert!(stack.peek("rust.fifo").await.is_empty());
    let empty = wire.empty.lock().unwrap().clone();
    assert_eq!(Vec::from_iter(empty), ["ChangeMessageVisibility", "DeleteMessage"]);
    assert_eq!(*wire.answers.lock().unwrap(), 6);
}

#[tokio::test]
async fn rust_sdk_sees_lost_conditions() {
    let (stack, wire) = (Stack::start().await, Wire::default());
    let dynamo = client!(aws_sdk_dynamodb, stack, wire);
    let definition = AttributeDefinition::builder().attribute_name("thread");
    let key = KeySchemaElement::builder().attribute_name("thread").key_type(KeyType::Hash);
    let create = dynamo
        .create_table()
        .table_name("rust")
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(definition.attribute_type(ScalarAttributeType::S).build().unwrap())
        .key_schema(key.build().unwrap());
    create.send().await.unwrap();
    let put = || {
        dynamo
            .put_item()
            .table_name("rust")
            .item("thread", text("t"))
            .item("version", number(1))
            .condition_expression("attribute_not_exists(thread)")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
    };
    put().await.unwrap();
    let lost = put().await.unwrap_err();
    assert!(lost.request_id().is_some());
    let lost = lost.into_service_error();
    assert_eq!(lost.code(), Some("ConditionalCheckFailedException"));
    let aws_sdk_dynamodb::operation::put_item::PutItemError::ConditionalCheckFailedException(lost) =
        lost
    else {
        panic!("{lost:?}")
    };
    assert_eq!(lost.item().unwrap()["version"], number(1));

    let update = dynamo
        .update_item()
        .table_name("rust")
        .key("thread", text("t"))
        .update_expression("SET version = :two")
        .expression_attribute_values(":two", number(2));
    update.send().await.unwrap();
    let get = dynamo.get_item().table_name("rust").key("thread", text("t")).consistent_read(true);
    assert_eq!(get.send().await.unwrap().item().unwrap()["version"], number(2));
    let query = dynamo
        .query()
        .table_name("rust")
        .key_condition_expression("thread = :t")
        .expression_attribute_values(":t", text("t"));
    assert_eq!(query.send().await.unwrap().count(), 1);
    let keys = KeysAndAttributes::builder().keys([("thread".to_owned(), text("t"))].into());
    let batch = dynamo.batch_get_item().request_items("rust", keys.build().unwrap());
    let batch = batch.send().await.unwrap();
    assert_eq!(batch.responses().unwrap()["rust"].len(), 1);
    assert!(batch.unprocessed_keys().unwrap().is_empty());

    let write = |version: u32| {
        let put = Put::builder().table_name("rust").item("thread", text("other"));
        let check = ConditionCheck::builder()
            .table_name("rust")
            .key("thread", text("t"))
            .condition_expression("version = :v")
            .expression_attribute_values(":v", number(version));
        dynamo
            .transact_write_items()
            .transact_items(TransactWriteItem::builder().put(put.build().unwrap()).build())
            .transact_items(
                TransactWriteItem::builder().condition_check(check.build().unwrap()).build(),
            )
            .send()
    };
    let cancelled = write(1).await.unwrap_err().into_service_error();
    let aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError::TransactionCanceledException(cancelled) =
        cancelled
    else {
        panic!("{cancelled:?}")
    };
    let codes: Vec<_> =
        cancelled.cancellation_reasons().iter().filter_map(|reason| reason.code()).collect();
    assert_eq!(codes, ["None", "ConditionalCheckFailed"]);
    write(2).await.unwrap();
    dynamo.delete_item().table_name("rust").key("thread", text("t")).send().await.unwrap();
    assert_eq!(dynamo.scan().table_name("rust").send().await.unwrap().count(), 1);
}

#[tokio::test]
async fn rust_sdk_handles_schedules() {
    let (stack, wire) = (Stack::start().await, Wire::default());
    let scheduler = client!(aws_sdk_scheduler, stack, wire);
    let window =
        || FlexibleTimeWindow::builder().mode(FlexibleTimeWindowMode::Off).build().unwrap();
    let target = || {
        Target::builder()
            .arn("arn:aws:sqs:us-east-1:000000000000:test-Wakes.fifo")
            .role_arn("arn:aws:iam::000000000000:role/wakes")
            .input(r#"{"name":"later"}"#)
            .sqs_parameters(SqsParameters::builder().message_group_id("g").build())
            .build()
            .unwrap()
    };
    let create = || {
        scheduler
            .create_schedule()
            .name("wake")
            .group_name("wakes")
            .schedule_expression("at(2099-01-01T00:00:00)")
            .action_after_completion(ActionAfterCompletion::Delete)
            .flexible_time_window(window())
            .target(target())
            .send()
    };
    let made = create().await.unwrap();
    assert!(made.schedule_arn().ends_with(":schedule/wakes/wake"));
    assert!(create().await.unwrap_err().into_service_error().is_conflict_exception());
    let get = || scheduler.get_schedule().name("wake").group_name("wakes").send();
    let got = get().await.unwrap();
    assert_eq!(got.state(), Some(&ScheduleState::Enabled));
    assert_eq!(got.target().unwrap().retry_policy().unwrap().maximum_retry_attempts(), Some(185));
    assert!(got.creation_date().is_some());
    let update = scheduler
        .update_schedule()
        .name("wake")
        .group_name("wakes")
        .schedule_expression("at(2000-01-01T00:00:00)")
        .flexible_time_window(window())
        .target(target());
    update.send().await.unwrap();
    crate::support::until("it fires", async || {
        let waiting = stack.peek("test-Wakes.fifo").await;
        waiting.len() == 1 && waiting[0]["group_id"] == "g"
    })
    .await;
    let delete = || scheduler.delete_schedule().name("wake").group_name("wakes").send();
    delete().await.unwrap();
    let gone = delete().await.unwrap_err();
    assert!(gone.request_id().is_some());
    assert!(gone.into_service_error().is_resource_not_found_exception());
    assert!(get().await.unwrap_err().into_service_error().is_resource_not_found_exception());
    let empty = wire.empty.lock().unwrap().clone();
    assert_eq!(Vec::from_iter(empty), ["DeleteSchedule"]);
}

#[tokio::test]
async fn rust_sdk_handles_secrets() {
    let (stack, wire) = (Stack::start().await, Wire::default());
    let secrets = client!(aws_sdk_secretsmanager, stack, wire);
    let id = stack.engine.resource("Keys").unwrap();
    let put =
        secrets.put_secret_value().secret_id(&id).secret_string("second").send().await.unwrap();
    let second = secrets.get_secret_value().secret_id(&id).send().await.unwrap();
    assert_eq!(second.secret_string(), Some("second"));
    assert_eq!(second.version_id(), put.version_id());
    let described = secrets.describe_secret().secret_id(&id).send().await.unwrap();
    let stages = described.version_ids_to_stages().unwrap();
    assert_eq!(stages[put.version_id().unwrap()], ["AWSCURRENT"]);
    let missing = secrets.get_secret_value().secret_id("nobody").send().await.unwrap_err();
    assert!(missing.request_id().is_some());
    let missing = missing.into_service_error();
    assert_eq!(missing.message(), Some("Secrets Manager can't find the specified secret."));
    assert!(missing.is_resource_not_found_exception());
}
