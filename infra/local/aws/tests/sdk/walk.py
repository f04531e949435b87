"""Walks every operation that the engine serves with AWS's Python SDK, asserts what each does, and compares each raw answer
with AWS's own model of it. Reads what to talk to from standard input; prints what it walked and every fault."""

import json
import sys
import urllib.request

import boto3
import shapes
from botocore.config import Config
from botocore.exceptions import ClientError

given = json.load(sys.stdin)
endpoint = given["endpoint"]
session = boto3.session.Session(
    aws_access_key_id=given["access_key_id"],
    aws_secret_access_key=given["secret_access_key"],
    region_name="us-east-1",
)
walked, refused, faults, bodies = {}, {}, [], []


def inspect(operation_model, response_dict, **_):
    """Sees each raw answer before the SDK reads it."""
    headers = {name.lower(): value for name, value in response_dict["headers"].items()}
    body, status = response_dict["body"], response_dict["status_code"]
    if not isinstance(body, bytes):
        # A stream, which only its caller reads.
        body = b"..."
    service = operation_model.service_model.service_name
    names = walked if status < 300 else refused
    names.setdefault(service, set()).add(operation_model.name)
    bodies.append((operation_model.name, status, headers, body))
    faults.extend(shapes.of_answer(operation_model, status, headers, body))


def client(service):
    config = Config(retries={"total_max_attempts": 1, "mode": "standard"})
    made = session.client(service, endpoint_url=endpoint, config=config)
    made.meta.events.register(f"before-parse.{made.meta.service_model.service_id.hyphenize()}", inspect)
    return made


def refusal(code, call, **arguments):
    """The call must be refused with this code."""
    try:
        answer = call(**arguments)
    except ClientError as error:
        if error.response["Error"]["Code"] != code:
            faults.append(f"{arguments}: {error} instead of {code}")
        return error.response
    faults.append(f"{arguments} was taken instead of refused with {code}: {answer}")
    return {}


def holds(what, condition):
    if not condition:
        faults.append(f"{what} does not hold")


def advance(seconds):
    body = json.dumps({"advance_ms": seconds * 1000}).encode()
    headers = {"authorization": f"Bearer {given['control_key']}"}
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/_bobbin/clock", body, headers, method="POST")).read()


def queues():
    sqs = client("sqs")
    fifo = {"FifoQueue": "true", "VisibilityTimeout": "30"}
    dead = sqs.create_queue(QueueName="walk-dead.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    dead_arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": dead_arn, "maxReceiveCount": 1})
    url = sqs.create_queue(QueueName="walk.fifo", Attributes=fifo | {"RedrivePolicy": policy})["QueueUrl"]
    plain = sqs.create_queue(QueueName="walk", Attributes={"VisibilityTimeout": "30"})["QueueUrl"]
    holds("a queue is found by its name", sqs.get_queue_url(QueueName="walk.fifo")["QueueUrl"] == url)
    holds("a queue is listed", sqs.list_queues(QueueNamePrefix="walk.")["QueueUrls"] == [url])
    holds("no queue, no list", "QueueUrls" not in sqs.list_queues(QueueNamePrefix="nobody"))
    sqs.set_queue_attributes(QueueUrl=plain, Attributes={"VisibilityTimeout": "31"})
    holds("no attribute asked for, none told", "Attributes" not in sqs.get_queue_attributes(QueueUrl=plain))
    sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    holds("no tag, no map", "Tags" not in sqs.list_queue_tags(QueueUrl=url))
    sqs.tag_queue(QueueUrl=url, Tags={"owner": "walk", "other": "x"})
    sqs.untag_queue(QueueUrl=url, TagKeys=["other"])
    holds("tags are kept", sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"owner": "walk"})

    send = dict(QueueUrl=url, MessageGroupId="g", MessageDeduplicationId="one", MessageBody="hello")
    traced = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}}
    colour = {"colour": {"DataType": "String", "StringValue": "blue"}}
    sent = sqs.send_message(**send, MessageAttributes=colour, MessageSystemAttributes=traced)
    holds("a repeat is answered as the first", sqs.send_message(**send)["MessageId"] == sent["MessageId"])
    everything = dict(MessageSystemAttributeNames=["All"], MessageAttributeNames=["All"], MaxNumberOfMessages=10)
    taken = sqs.receive_message(QueueUrl=url, **everything)["Messages"]
    holds("one message", len(taken) == 1)
    told = taken[0]["Attributes"]
    holds("it tells its trace", told.get("AWSTraceHeader") == "Root=1")
    holds("it tells its number", told.get("SequenceNumber") == sent["SequenceNumber"])
    holds("nothing to receive, no list", "Messages" not in sqs.receive_message(QueueUrl=url))
    handle = taken[0]["ReceiptHandle"]
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=10)
    advance(10)
    refusal("InvalidParameterValue", sqs.delete_message, QueueUrl=url, ReceiptHandle=handle)
    # The second receive of a message that may be received once moves it.
    sqs.receive_message(QueueUrl=url)
    dead_letter = sqs.receive_message(QueueUrl=dead, **everything)["Messages"][0]
    told = dead_letter["Attributes"]
    holds("a dead letter keeps its id", dead_letter["MessageId"] == sent["MessageId"])
    holds("its own id is its deduplication id", told["MessageDeduplicationId"] == sent["MessageId"])
    holds("it keeps its group", told["MessageGroupId"] == "g")
    holds("it says where it came from", told["DeadLetterQueueSourceArn"].endswith(":walk.fifo"))
    holds("receives count across queues", told["ApproximateReceiveCount"] == "2")
    holds("it keeps its attributes", dead_letter["MessageAttributes"]["colour"]["StringValue"] == "blue")
    sqs.delete_message(QueueUrl=dead, ReceiptHandle=dead_letter["ReceiptHandle"])

    entries = [{"Id": "a", "MessageBody": "a"}, {"Id": "b", "MessageBody": "\x01"}]
    batch = sqs.send_message_batch(QueueUrl=plain, Entries=entries)
    holds("a batch tells both lists", [one["Id"] for one in batch["Failed"]] == ["b"])
    whole = sqs.send_message_batch(QueueUrl=plain, Entries=[{"Id": "c", "MessageBody": "c"}])
    holds("a list without failures is there", whole["Failed"] == [])
    taken = sqs.receive_message(QueueUrl=plain, MaxNumberOfMessages=10)["Messages"]
    held = [{"Id": str(number), "ReceiptHandle": one["ReceiptHandle"]} for number, one in enumerate(taken)]
    longer = [one | {"VisibilityTimeout": 60} for one in held]
    sqs.change_message_visibility_batch(QueueUrl=plain, Entries=longer)
    bad = {"Id": "bad", "ReceiptHandle": "none"}
    deleted = sqs.delete_message_batch(QueueUrl=plain, Entries=held + [bad])
    holds("a bad handle fails alone", [one["Id"] for one in deleted["Failed"]] == ["bad"])

    for count in (0, 11):
        refusal("InvalidParameterValue", sqs.receive_message, QueueUrl=plain, MaxNumberOfMessages=count)
    for seconds in (-1, 43201):
        refusal("InvalidParameterValue", sqs.receive_message, QueueUrl=plain, VisibilityTimeout=seconds)
    refusal("InvalidParameterValue", sqs.receive_message, QueueUrl=plain, WaitTimeSeconds=21)
    refusal("InvalidAttributeName", sqs.receive_message, QueueUrl=plain, AttributeNames=["Colour"])
    refusal("InvalidParameterValue", sqs.send_message, QueueUrl=plain, MessageBody="x", DelaySeconds=901)
    refusal("InvalidParameterValue", sqs.send_message, DelaySeconds=1, **(send | {"MessageDeduplicationId": "two"}))
    refusal("InvalidParameterValue", sqs.send_message, QueueUrl=url, MessageGroupId="g", MessageBody="x")
    refusal("MissingParameter", sqs.send_message, QueueUrl=url, MessageDeduplicationId="x", MessageBody="x")
    refusal("InvalidParameterValue", sqs.send_message, **(send | {"MessageGroupId": "g" * 129}))
    refusal("InvalidMessageContents", sqs.send_message, QueueUrl=plain, MessageBody="\x00")
    # Body, and name, type and value of each attribute count.
    sqs.send_message(QueueUrl=plain, MessageBody="x" * (1048576 - 16), MessageAttributes=colour)
    for body, attributes in (("x" * (1048576 - 15), colour), ("x" * 1048577, {})):
        refusal("InvalidParameterValue", sqs.send_message, QueueUrl=plain, MessageBody=body, MessageAttributes=attributes)
    for name in ("AWS.name", ".name", "na..me", "na me"):
        attribute = {name: {"DataType": "String", "StringValue": "x"}}
        refusal("InvalidParameterValue", sqs.send_message, QueueUrl=plain, MessageBody="x", MessageAttributes=attribute)
    number = {"n": {"DataType": "Number", "StringValue": "many"}}
    refusal("InvalidParameterValue", sqs.send_message, QueueUrl=plain, MessageBody="x", MessageAttributes=number)
    refusal("ReceiptHandleIsInvalid", sqs.delete_message, QueueUrl=plain, ReceiptHandle="none")
    holds("a bad handle is told with 404", bodies[-1][1] == 404)
    refusal("AWS.SimpleQueueService.NonExistentQueue", sqs.get_queue_url, QueueName="nobody")
    refusal("InvalidAttributeValue", sqs.set_queue_attributes, QueueUrl=plain, Attributes={"DelaySeconds": "901"})
    refusal("InvalidAttributeName", sqs.get_queue_attributes, QueueUrl=plain, AttributeNames=["Colour"])
    refusal("QueueAlreadyExists", sqs.create_queue, QueueName="walk", Attributes={"VisibilityTimeout": "1"})
    for entries, code in (
        ([], "EmptyBatchRequest"),
        ([{"Id": "a", "MessageBody": "x"}] * 2, "BatchEntryIdsNotDistinct"),
        ([{"Id": str(number), "MessageBody": "x"} for number in range(11)], "TooManyEntriesInBatchRequest"),
        ([{"Id": "a b", "MessageBody": "x"}], "InvalidBatchEntryId"),
        ([{"Id": str(number), "MessageBody": "x" * 600_000} for number in range(2)], "BatchRequestTooLong"),
    ):
        code = f"AWS.SimpleQueueService.{code}"
        refusal(code, sqs.send_message_batch, QueueUrl=plain, Entries=entries)
    sqs.send_message(QueueUrl=plain, MessageBody="soon visible")
    taken = sqs.receive_message(QueueUrl=plain)["Messages"][0]["ReceiptHandle"]
    advance(31)
    change = dict(QueueUrl=plain, ReceiptHandle=taken, VisibilityTimeout=1)
    refusal("AWS.SimpleQueueService.MessageNotInflight", sqs.change_message_visibility, **change)
    sqs.purge_queue(QueueUrl=plain)
    refusal("AWS.SimpleQueueService.PurgeQueueInProgress", sqs.purge_queue, QueueUrl=plain)
    holds("a purge too many is told with 403", bodies[-1][1] == 403)
    for queue in (url, plain, dead):
        sqs.delete_queue(QueueUrl=queue)
    refusal("AWS.SimpleQueueService.QueueDeletedRecently", sqs.create_queue, QueueName="walk")
    advance(61)
    sqs.delete_queue(QueueUrl=sqs.create_queue(QueueName="walk")["QueueUrl"])


def tables():
    dynamodb = client("dynamodb")
    name, key = "walk", {"thread": {"S": "t"}, "item": {"S": "one"}}
    attributes = [{"AttributeName": one, "AttributeType": "S"} for one in ("thread", "item", "due")]
    keys = [{"AttributeName": "thread", "KeyType": "HASH"}, {"AttributeName": "item", "KeyType": "RANGE"}]
    index = {
        "IndexName": "due-index",
        "KeySchema": [{"AttributeName": "due", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }
    made = dynamodb.create_table(
        TableName=name,
        AttributeDefinitions=attributes,
        KeySchema=keys,
        BillingMode="PAY_PER_REQUEST",
        GlobalSecondaryIndexes=[index],
    )
    arn = made["TableDescription"]["TableArn"]
    dynamodb.describe_table(TableName=name)
    dynamodb.list_tables()
    dynamodb.update_table(TableName=name, DeletionProtectionEnabled=False)
    dynamodb.update_time_to_live(
        TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires_at"}
    )
    dynamodb.describe_time_to_live(TableName=name)
    dynamodb.tag_resource(ResourceArn=arn, Tags=[{"Key": "owner", "Value": "walk"}])
    dynamodb.list_tags_of_resource(ResourceArn=arn)
    dynamodb.untag_resource(ResourceArn=arn, TagKeys=["owner"])

    item = key | {"version": {"N": "1"}, "bytes": {"B": b"\x00\xff"}, "due": {"S": "now"}, "names": {"SS": ["a", "b"]}}
    once = dict(TableName=name, Item=item, ConditionExpression="attribute_not_exists(thread)")
    dynamodb.put_item(**once, ReturnConsumedCapacity="TOTAL")
    told = refusal(
        "ConditionalCheckFailedException", dynamodb.put_item, **once, ReturnValuesOnConditionCheckFailure="ALL_OLD"
    )
    holds("a lost condition tells the item", told.get("Item", {}).get("version") == {"N": "1"})
    got = dynamodb.get_item(TableName=name, Key=key, ConsistentRead=True)["Item"]
    holds("an item comes back as it was put", got == item)
    nothing = dynamodb.get_item(TableName=name, Key=key | {"item": {"S": "none"}})
    holds("no item, no member", "Item" not in nothing)
    update = dict(
        TableName=name,
        Key=key,
        UpdateExpression="SET version = version + :one",
        ConditionExpression="version = :is",
        ReturnValues="ALL_NEW",
    )
    values = {":one": {"N": "1"}, ":is": {"N": "1"}}
    new = dynamodb.update_item(**update, ExpressionAttributeValues=values)["Attributes"]
    holds("an update tells the new item", new["version"] == {"N": "2"})
    refusal("ConditionalCheckFailedException", dynamodb.update_item, **update, ExpressionAttributeValues=values)
    found = dynamodb.query(
        TableName=name, KeyConditionExpression="thread = :t", ExpressionAttributeValues={":t": {"S": "t"}}
    )
    holds("a query counts", found["Count"] == 1 and found["ScannedCount"] == 1)
    by_index = dict(IndexName="due-index", KeyConditionExpression="due = :d")
    by_index |= dict(TableName=name, ExpressionAttributeValues={":d": {"S": "now"}})
    holds("an index has keys only", "version" not in dynamodb.query(**by_index)["Items"][0])
    refusal("ValidationException", dynamodb.query, **by_index, ConsistentRead=True)
    dynamodb.scan(TableName=name, Limit=1)
    two = key | {"item": {"S": "two"}}
    batch = dynamodb.batch_write_item(RequestItems={name: [{"PutRequest": {"Item": two}}]})
    holds("nothing is left of a batch", batch["UnprocessedItems"] == {})
    got = dynamodb.batch_get_item(RequestItems={name: {"Keys": [key, two]}})
    holds("a batch gets both", len(got["Responses"][name]) == 2)

    def write(expected):
        condition = dict(ConditionExpression="version = :v", ExpressionAttributeValues={":v": {"N": expected}})
        put = {"TableName": name, "Item": key | {"item": {"S": "three"}}}
        check = {"TableName": name, "Key": key, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"} | condition
        return [{"Put": put}, {"ConditionCheck": check}]

    dynamodb.transact_write_items(TransactItems=write("2"), ClientRequestToken="once")
    told = refusal(
        "IdempotentParameterMismatchException",
        dynamodb.transact_write_items,
        TransactItems=write("3"),
        ClientRequestToken="once",
    )
    told = refusal("TransactionCanceledException", dynamodb.transact_write_items, TransactItems=write("3"))
    reasons = told.get("CancellationReasons", [])
    holds("reasons come in order", [one["Code"] for one in reasons] == ["None", "ConditionalCheckFailed"])
    holds("a reason tells the item", reasons[1].get("Item", {}).get("version") == {"N": "2"})
    got = dynamodb.transact_get_items(TransactItems=[{"Get": {"TableName": name, "Key": key}}])
    holds("a transaction gets", got["Responses"][0]["Item"]["version"] == {"N": "2"})
    dynamodb.execute_statement(Statement=f"SELECT * FROM \"{name}\" WHERE thread = 't'")
    dynamodb.batch_execute_statement(
        Statements=[{"Statement": f"SELECT * FROM \"{name}\" WHERE thread = 't' AND item = 'one'"}]
    )
    dynamodb.execute_transaction(
        TransactStatements=[{"Statement": f"SELECT * FROM \"{name}\" WHERE thread = 't' AND item = 'one'"}]
    )
    old = dynamodb.delete_item(TableName=name, Key=two, ReturnValues="ALL_OLD")
    holds("a delete tells what was", old["Attributes"] == two)
    refusal("ResourceNotFoundException", dynamodb.get_item, TableName="nobody", Key=key)
    refusal("ResourceInUseException", dynamodb.create_table, TableName=name, AttributeDefinitions=attributes[:2], KeySchema=keys, BillingMode="PAY_PER_REQUEST")
    refusal("ValidationException", dynamodb.put_item, TableName=name, Item=key | {"large": {"S": "x" * 409_600}})
    dynamodb.delete_table(TableName=name)


def schedules():
    scheduler, sqs = client("scheduler"), client("sqs")
    scheduler.create_schedule_group(Name="walk")
    refusal("ConflictException", scheduler.create_schedule_group, Name="walk")
    scheduler.get_schedule_group(Name="walk")
    scheduler.list_schedule_groups(NamePrefix="walk")
    url = sqs.create_queue(QueueName="woken.fifo", Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"})
    url = url["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    wake = dict(
        Name="wake",
        GroupName="walk",
        FlexibleTimeWindow={"Mode": "OFF"},
        ScheduleExpression="at(2099-01-01T00:00:00)",
        ScheduleExpressionTimezone="Europe/Berlin",
        ActionAfterCompletion="DELETE",
        Target={
            "Arn": arn,
            "RoleArn": "arn:aws:iam::000000000000:role/walk",
            "Input": "{}",
            "SqsParameters": {"MessageGroupId": "g"},
        },
    )
    made = scheduler.create_schedule(**wake, ClientToken="once")["ScheduleArn"]
    holds("a repeat is answered as the first", scheduler.create_schedule(**wake, ClientToken="once")["ScheduleArn"] == made)
    refusal("ConflictException", scheduler.create_schedule, **(wake | {"Description": "x", "ClientToken": "once"}))
    refusal("ConflictException", scheduler.create_schedule, **wake)
    got = scheduler.get_schedule(Name="wake", GroupName="walk")
    holds("a schedule tells its retries", got["Target"]["RetryPolicy"]["MaximumRetryAttempts"] == 185)
    holds("and its zone", got["ScheduleExpressionTimezone"] == "Europe/Berlin")
    scheduler.update_schedule(**(wake | {"ScheduleExpression": "at(2000-01-01T00:00:00)"}))
    fired = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20, MessageSystemAttributeNames=["All"])["Messages"][0]
    holds("a schedule fires into its group", fired["Attributes"]["MessageGroupId"] == "g")
    refusal("ResourceNotFoundException", scheduler.update_schedule, **(wake | {"Name": "nobody"}))
    refusal("ResourceNotFoundException", scheduler.delete_schedule, Name="nobody", GroupName="walk")
    for expression in ("soon", "cron(0 8 * * ? *)"):
        unknown = {"Name": "x", "ScheduleExpression": expression}
        refusal("ValidationException", scheduler.create_schedule, **(wake | unknown))
    scheduler.create_schedule(**(wake | {"Name": "other"}))
    listed = scheduler.list_schedules(GroupName="walk", NamePrefix="other")["Schedules"]
    holds("a schedule is listed", [one["Name"] for one in listed] == ["other"])
    scheduler.delete_schedule(Name="other", GroupName="walk")
    scheduler.delete_schedule_group(Name="walk")
    refusal("ResourceNotFoundException", scheduler.get_schedule_group, Name="walk")
    sqs.delete_queue(QueueUrl=url)


def secrets():
    manager, secret = client("secretsmanager"), given["secret"]
    token = "0123456789" * 4
    put = manager.put_secret_value(SecretId=secret, SecretString="second", ClientRequestToken=token)
    holds("the token is the version", put["VersionId"] == token)
    again = manager.put_secret_value(SecretId=secret, SecretString="second", ClientRequestToken=token)
    holds("a repeat is answered as the first", again["VersionId"] == token)
    other = dict(SecretId=secret, SecretString="other", ClientRequestToken=token)
    refusal("ResourceExistsException", manager.put_secret_value, **other)
    holds("the value is there", manager.get_secret_value(SecretId=secret)["SecretString"] == "second")
    described = manager.describe_secret(SecretId=secret)["VersionIdsToStages"]
    holds("the version is told", described == {token: ["AWSCURRENT"]})
    holds("and found by its id", manager.get_secret_value(SecretId=secret, VersionId=token)["SecretString"] == "second")
    refusal("ResourceNotFoundException", manager.get_secret_value, SecretId=secret, VersionStage="AWSPREVIOUS")
    refusal("ResourceNotFoundException", manager.get_secret_value, SecretId="nobody")
    refusal("InvalidParameterException", manager.put_secret_value, SecretId=secret, SecretString="x" * 65_537)


def keys():
    kms, key = client("kms"), given["seal"]
    context = {"stack": "test", "tenant": "discord:1", "kind": "daytona"}
    sealed = kms.encrypt(KeyId=key, Plaintext=b"canary", EncryptionContext=context)
    arn, blob = sealed["KeyId"], sealed["CiphertextBlob"]
    holds("the key is told by its ARN", arn.endswith(f":key/{key}"))
    opened = kms.decrypt(CiphertextBlob=blob, KeyId=arn, EncryptionContext=context)
    holds("what was sealed opens", opened["Plaintext"] == b"canary" and opened["KeyId"] == arn)
    holds("with its key left out, too", kms.decrypt(CiphertextBlob=blob, EncryptionContext=context)["Plaintext"] == b"canary")
    for wrong in ({}, context | {"tenant": "discord:2"}, context | {"kind": "openai"}, context | {"more": "x"}):
        refusal("InvalidCiphertextException", kms.decrypt, CiphertextBlob=blob, KeyId=key, EncryptionContext=wrong)
    flipped = blob[:-1] + bytes([blob[-1] ^ 1])
    refusal("InvalidCiphertextException", kms.decrypt, CiphertextBlob=flipped, KeyId=key, EncryptionContext=context)
    refusal("IncorrectKeyException", kms.decrypt, CiphertextBlob=blob, KeyId=given["other_seal"], EncryptionContext=context)
    refusal("NotFoundException", kms.encrypt, KeyId="alias/none", Plaintext=b"x")
    refusal("ValidationException", kms.encrypt, KeyId=key, Plaintext=b"x" * 4097)
    holds("a key is described", kms.describe_key(KeyId=arn)["KeyMetadata"]["KeyState"] == "Enabled")


def functions():
    function, name = client("lambda"), given["function"]
    told = function.invoke(FunctionName=name, Payload=json.dumps({"do": "environment"}))
    value = json.loads(told["Payload"].read())
    holds("a function answers", value["AWS_LAMBDA_FUNCTION_NAME"] == name)
    holds("its version is told", told["ExecutedVersion"] == "$LATEST")
    failed = function.invoke(FunctionName=name, Payload=json.dumps({"do": "crash"}))
    holds("a crash is told", failed["FunctionError"] == "Unhandled" and "errorType" in json.loads(failed["Payload"].read()))
    queued = function.invoke(FunctionName=name, InvocationType="Event", Payload="{}")
    holds("an event is taken", queued["StatusCode"] == 202)
    large = json.dumps("x" * 1048576)
    refusal("RequestTooLargeException", function.invoke, FunctionName=name, InvocationType="Event", Payload=large)
    refusal("ResourceNotFoundException", function.invoke, FunctionName="nobody")
    refusal("InvalidRequestContentException", function.invoke, FunctionName=name, Payload="{")


def stacks():
    formation = client("cloudformation")
    stack = formation.describe_stacks(StackName=given["stack"])["Stacks"][0]
    holds("a stack is found by its name", stack["StackName"] == given["stack"])
    holds("and by its id", len(formation.describe_stacks(StackName=stack["StackId"])["Stacks"]) == 1)
    hidden = [one["ParameterValue"] for one in stack["Parameters"] if one["ParameterKey"] == "Password"]
    holds("what is hidden stays hidden", hidden == ["****"])
    refusal("ValidationError", formation.describe_stacks, StackName="nobody")


def unserved():
    """Every operation that was not walked must be one that the engine says it does not know."""
    # dynoxide knows it and needs an index of vectors, which nothing here has.
    beyond = {"dynamodb": {"SearchVectors"}}
    for service in shapes.CONTENT_TYPES:
        made = client(service)
        known = walked[service] | beyond.get(service, set())
        for operation in set(made.meta.service_model.operation_names) - known:
            model = made.meta.service_model.operation_model(operation)
            if service in ("lambda", "scheduler"):
                asked = raw(made, model.http["method"], model.http["requestUri"].split("?")[0], {}, b"{}")
            elif service == "cloudformation":
                form = {"content-type": "application/x-www-form-urlencoded"}
                asked = raw(made, "POST", "/", form, f"Action={operation}&Version=2010-05-15".encode())
            else:
                target = f"{made.meta.service_model.metadata['targetPrefix']}.{operation}"
                named = {"content-type": shapes.CONTENT_TYPES[service], "x-amz-target": target}
                asked = raw(made, "POST", "/", named, b"{}")
            status, text = asked
            if status < 400 or not ("UnknownOperation" in text or "InvalidAction" in text):
                faults.append(f"{service} {operation} is answered and was not walked: {status} {text[:120]}")


def raw(made, method, path, headers, body):
    """A signed request that the SDK would not build, and its raw answer."""
    from botocore.awsrequest import AWSRequest
    from botocore.httpsession import URLLib3Session

    request = AWSRequest(method=method, url=endpoint + path.replace("{", "").replace("}", ""), headers=headers, data=body)
    made._request_signer.sign("Raw", request)
    response = URLLib3Session().send(request.prepare())
    return response.status_code, response.content.decode() + str(response.headers)


for walk in (queues, tables, schedules, secrets, keys, functions, stacks, unserved):
    walk()
empty = sorted({name for name, status, _, body in bodies if status == 200 and not body})
print(json.dumps({"walked": {name: sorted(names) for name, names in walked.items()}, "empty": empty, "faults": faults}))
