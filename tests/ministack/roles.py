"""Tries every call of some services with the credentials of each function's role, and says which were refused.

Reads one JSON object from stdin: endpoint, stack, roles (logical ids of functions and roles), services (as botocore names them).
Prints one JSON object: cells (role, action, resource, refused, answer) and unenforced (calls that even a role without
any policy is not refused, so that nothing can be learned from them).

A role's sessions are made by AssumeRole, for which root is added to the trust of the role; its permissions stay as the
template made them. Calls carry as little as their shape demands, so that an allowed one fails for its arguments.
"""

import json
import re
import sys

import boto3
import botocore
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

REGION = "us-east-1"
CALL_S_MAX = 30
# An emulator that is busy drops a connection now and then, which says nothing of a permission.
TRIES = 5
OTHER = "other"
# Which argument names the resource, by service.
NAMED_BY = {"dynamodb": "TableName", "sqs": "QueueUrl", "secretsmanager": "SecretId", "kms": "KeyId", "scheduler": "GroupName", "logs": "logGroupName"}
KINDS = {
    "AWS::DynamoDB::Table": "dynamodb",
    "AWS::SQS::Queue": "sqs",
    "AWS::SecretsManager::Secret": "secretsmanager",
    "AWS::KMS::Key": "kms",
    "AWS::Scheduler::ScheduleGroup": "scheduler",
    "AWS::Logs::LogGroup": "logs",
}
REFUSALS = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError"}
ACTION = re.compile(r"perform: ([a-z0-9-]+:\w+)")


def client(wanted, service, session=None):
    keys = session or {"AccessKeyId": "test", "SecretAccessKey": "test", "SessionToken": None}
    return boto3.client(
        service,
        endpoint_url=wanted["endpoint"],
        region_name=REGION,
        aws_access_key_id=keys["AccessKeyId"],
        aws_secret_access_key=keys["SecretAccessKey"],
        aws_session_token=keys["SessionToken"],
        config=Config(
            parameter_validation=False,
            retries={"total_max_attempts": 1},
            read_timeout=CALL_S_MAX,
            connect_timeout=CALL_S_MAX,
            s3={"addressing_style": "path"},
        ),
    )


def least(shape, depth=0):
    """As little as a shape demands; what it demands is well-formed."""
    kind = shape.type_name
    if kind == "structure":
        return {name: least(shape.members[name], depth + 1) for name in shape.required_members} if depth < 6 else {}
    if kind == "list":
        return [least(shape.member, depth + 1)] if depth < 6 else []
    if kind == "map":
        return {}
    if kind == "blob":
        return b"x"
    if kind == "boolean":
        return False
    if kind in ("integer", "long"):
        return 1
    if kind in ("float", "double"):
        return 1.0
    if kind == "timestamp":
        return 1_700_000_000
    return shape.enum[0] if getattr(shape, "enum", None) else OTHER


def arguments(model, service, target, index, stack):
    if model.input_shape is None:
        return {}
    given = least(model.input_shape)
    members = model.input_shape.members
    name = NAMED_BY.get(service)
    if name in members:
        given[name] = target
    if service == "dynamodb":
        # A transaction is authorized as what it does to each item.
        if model.name == "TransactGetItems":
            given["TransactItems"] = [{"Get": {"TableName": target, "Key": {}}}]
        if model.name == "TransactWriteItems":
            given["TransactItems"] = [{"Delete": {"TableName": target, "Key": {}}}]
        if "RequestItems" in members:
            given["RequestItems"] = {target: {"Keys": []} if model.name == "BatchGetItem" else []}
        if index and "IndexName" in members:
            given["IndexName"] = index
    if service == "kms" and "EncryptionContext" in members:
        # Without what the statement's condition asks for, an allowed call would be refused.
        given["EncryptionContext"] = {"stack": stack, "tenant": OTHER, "kind": OTHER}
    if service == "secretsmanager" and "Name" in members:
        given["Name"] = target
    if service == "sqs" and "QueueName" in members:
        given["QueueName"] = target.rsplit("/", 1)[-1]
    return given


def tried(caller, model, given):
    """Whether a call was refused, and what was answered."""
    for last in (n + 1 == TRIES for n in range(TRIES)):
        try:
            getattr(caller, botocore.xform_name(model.name))(**given)
            return False, "done", ""
        except ClientError as error:
            told = error.response.get("Error", {})
            code, message = told.get("Code", ""), told.get("Message", "")
            refused = code in REFUSALS or (code == "403" and not message) or "is not authorized to perform" in message
            return refused, code, message
        except HTTPClientError:
            if last:
                raise
        except (BotoCoreError, ValueError, TypeError, KeyError, AttributeError) as error:
            return False, type(error).__name__, str(error)


def main():
    wanted = json.load(sys.stdin)
    cloudformation, iam, sts = (client(wanted, name) for name in ("cloudformation", "iam", "sts"))
    resources = {}
    for page in cloudformation.get_paginator("list_stack_resources").paginate(StackName=wanted["stack"]):
        for one in page["StackResourceSummaries"]:
            resources[one["LogicalResourceId"]] = (one["ResourceType"], one["PhysicalResourceId"])

    places = {service: [] for service in wanted["services"]}
    for logical, (kind, physical) in resources.items():
        if kind in KINDS and KINDS[kind] in places:
            places[KINDS[kind]].append((logical, physical, None))
            if kind == "AWS::DynamoDB::Table":
                places["dynamodb"].append((f"{logical}/index/due", physical, "due"))
    key = [{"AttributeName": "thread", "KeyType": "HASH"}]
    client(wanted, "dynamodb").create_table(
        TableName=OTHER,
        KeySchema=key,
        AttributeDefinitions=[{"AttributeName": "thread", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    queue = client(wanted, "sqs").create_queue(QueueName=f"{OTHER}.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    secret = client(wanted, "secretsmanager").create_secret(Name=OTHER, SecretString="x")["ARN"]
    kms = client(wanted, "kms")
    seal = kms.create_key()["KeyMetadata"]["Arn"]
    places["kms"] = [(logical, kms.describe_key(KeyId=physical)["KeyMetadata"]["Arn"], None) for logical, physical, _ in places["kms"]]
    for service in places:
        physical = {"sqs": queue, "secretsmanager": secret, "kms": seal}.get(service, OTHER)
        places[service].append((OTHER, physical, None))

    account = sts.get_caller_identity()["Account"]
    trust = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{account}:root"}, "Action": "sts:AssumeRole"}
    trusted = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    iam.create_role(RoleName="nothing", AssumeRolePolicyDocument=trusted)
    names = {"nothing": "nothing"}
    for function in wanted["roles"]:
        kind, physical = resources[function]
        if kind == "AWS::IAM::Role":
            names[function] = physical
        else:
            arn = client(wanted, "lambda").get_function_configuration(FunctionName=physical)["Role"]
            names[function] = arn.rsplit("/", 1)[-1]
        iam.update_assume_role_policy(RoleName=names[function], PolicyDocument=trusted)
    sessions = {}
    for function, name in names.items():
        arn = iam.get_role(RoleName=name)["Role"]["Arn"]
        sessions[function] = sts.assume_role(RoleArn=arn, RoleSessionName="matrix")["Credentials"]

    cells, unenforced = [], []
    for service in wanted["services"]:
        callers = {function: client(wanted, service, session) for function, session in sessions.items()}
        for operation in callers["nothing"].meta.service_model.operation_names:
            model = callers["nothing"].meta.service_model.operation_model(operation)
            if model.has_event_stream_input or model.has_event_stream_output:
                unenforced.append(f"{service}:{operation} (a stream)")
                continue
            for logical, physical, index in places[service]:
                if index and "IndexName" not in model.input_shape.members:
                    continue
                given = arguments(model, service, physical, index, wanted["stack"])
                refused, code, message = tried(callers["nothing"], model, given)
                if not refused:
                    unenforced.append(f"{service}:{operation} on {logical} ({code})")
                    continue
                found = ACTION.search(message)
                action = found.group(1) if found else f"{service}:{operation}"
                for function in wanted["roles"]:
                    refused, code, message = tried(callers[function], model, given)
                    cell = {"role": function, "action": action, "call": operation, "resource": logical}
                    cells.append({**cell, "refused": refused, "answer": f"{code} {message}"[:200]})
    print(json.dumps({"cells": cells, "unenforced": unenforced}))


main()
