"""Deploys the project's own template to ministack and says where everything is.

Reads one JSON object from stdin: endpoint, template (file), functions (logical id -> bootstrap), parameters, secrets
(logical id -> value, put when the stack stands), stack, mappings (event source mappings wanted on the queue of messages). Prints one JSON object.

The template is changed in six ways only. Two are about the code's origin: `CodeUri` names the zip in the emulator's
bucket, and `Architectures` is left to the host's. The third is about rights to schedules: the emulator takes every
schedule for one of the group `default` when it checks them, so what is allowed in a group is allowed there too. The
fourth leaves out alarms that add metrics up, which it does not have. The fifth leaves out the conditions on KMS's encryption
context, which the emulator does not tell when it judges a call: an allowed one would be refused. The sixth lets who may send,
delete or hide a message do so with several, for which AWS has no permission of its own
(https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-batch-api-actions.html) and the emulator does.
"""

import io
import json
import subprocess
import sys
import tempfile
import time
import zipfile

import boto3
import yaml

REGION = "us-east-1"
BUCKET = "bobbin-code"
DEPLOY_S_MAX = 100
MAPPING_S_MAX = 20
IN_BATCHES = ("sqs:SendMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")


class Template(yaml.SafeLoader):
    """Reads CloudFormation's short tags as the long forms."""


def tagged(loader, suffix, node):
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".")
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


Template.add_multi_constructor("!", tagged)


def with_default_group(template):
    """Adds the group `default` to what the roles' policies say about schedules of a group."""
    for resource in template["Resources"].values():
        for policy in resource.get("Properties", {}).get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                allowed = statement["Resource"]
                text = allowed.get("Fn::Sub", "") if isinstance(allowed, dict) else ""
                if ":schedule/" in text:
                    group = text.split(":schedule/")[0] + ":schedule/default/*"
                    statement["Resource"] = [allowed, {"Fn::Sub": group}]


def with_batches(template):
    """Adds the batch versions of actions to the roles' policies."""
    for resource in template["Resources"].values():
        for policy in resource.get("Properties", {}).get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                actions = statement["Action"]
                actions = [actions] if isinstance(actions, str) else actions
                statement["Action"] = actions + [f"{action}Batch" for action in actions if action in IN_BATCHES]


def without_contexts(template):
    """Takes the conditions on an encryption context off what roles may do with keys, at the roles and at the keys."""
    for resource in template["Resources"].values():
        properties = resource.get("Properties", {})
        for policy in ("PolicyDocument", "KeyPolicy"):
            for statement in properties.get(policy, {}).get("Statement", []):
                if statement["Action"] in ("kms:Encrypt", "kms:Decrypt"):
                    statement.pop("Condition")


def zipped(bootstrap):
    """A zip with the stripped program at its root."""
    with tempfile.NamedTemporaryFile() as stripped:
        subprocess.run(["strip", "-o", stripped.name, bootstrap], check=True)
        program = open(stripped.name, "rb").read()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        entry = zipfile.ZipInfo("bootstrap")
        entry.external_attr = 0o755 << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, program)
    return out.getvalue()


def main():
    wanted = json.load(sys.stdin)

    def client(service):
        return boto3.client(
            service,
            endpoint_url=wanted["endpoint"],
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    with open(wanted["template"], encoding="utf-8") as file:
        template = yaml.load(file, Loader=Template)
    template["Globals"]["Function"].pop("Architectures", None)
    with_default_group(template)
    with_batches(template)
    without_contexts(template)
    alarms = [name for name, resource in template["Resources"].items() if resource["Type"] == "AWS::CloudWatch::Alarm"]
    for name in alarms:
        if "Metrics" in template["Resources"][name]["Properties"]:
            del template["Resources"][name]

    s3 = client("s3")
    s3.create_bucket(Bucket=BUCKET)
    for name, bootstrap in wanted["functions"].items():
        s3.put_object(Bucket=BUCKET, Key=f"{name}.zip", Body=zipped(bootstrap))
        template["Resources"][name]["Properties"]["CodeUri"] = f"s3://{BUCKET}/{name}.zip"

    cloudformation = client("cloudformation")
    stack = wanted["stack"]
    cloudformation.create_stack(
        StackName=stack,
        TemplateBody=json.dumps(template),
        Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in wanted["parameters"].items()],
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
    )
    until = time.monotonic() + DEPLOY_S_MAX
    while True:
        described = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
        status = described["StackStatus"]
        if status == "CREATE_COMPLETE":
            break
        if status != "CREATE_IN_PROGRESS" or time.monotonic() > until:
            events = cloudformation.describe_stack_events(StackName=stack)["StackEvents"]
            reasons = [f"{e['LogicalResourceId']}: {e.get('ResourceStatusReason')}" for e in events if e.get("ResourceStatusReason")]
            sys.exit(f"the stack is {status}: {described.get('StackStatusReason', '')}\n" + "\n".join(reasons[:20]))
        time.sleep(0.2)
    outputs = {output["OutputKey"]: output["OutputValue"] for output in described["Outputs"]}

    def physical(logical):
        detail = cloudformation.describe_stack_resource(StackName=stack, LogicalResourceId=logical)
        return detail["StackResourceDetail"]["PhysicalResourceId"]

    secrets = client("secretsmanager")
    for logical, value in wanted["secrets"].items():
        secrets.put_secret_value(SecretId=physical(logical), SecretString=value)

    lambda_ = client("lambda")
    sqs = client("sqs")
    queue = sqs.get_queue_attributes(QueueUrl=outputs["MessagesQueueUrl"], AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    worker = physical("Worker")
    for _ in range(wanted["mappings"] - 1):
        lambda_.create_event_source_mapping(
            EventSourceArn=queue, FunctionName=worker, BatchSize=1, FunctionResponseTypes=["ReportBatchItemFailures"]
        )
    until = time.monotonic() + MAPPING_S_MAX
    while True:
        mappings = lambda_.list_event_source_mappings(FunctionName=worker)["EventSourceMappings"]
        ours = [m for m in mappings if m["EventSourceArn"] == queue and m["State"] == "Enabled"]
        if len(ours) == wanted["mappings"]:
            break
        if time.monotonic() > until:
            sys.exit(f"of {wanted['mappings']} mappings {len(ours)} are enabled: {mappings}")
        time.sleep(0.2)

    url = lambda_.get_function_url_config(FunctionName=physical("Ingress"))["FunctionUrl"]
    print(
        json.dumps(
            {
                "function_url": url,
                "table": outputs["TableName"],
                "messages_queue_url": outputs["MessagesQueueUrl"],
                "control_queue_url": outputs["ControlQueueUrl"],
                "sweeper": physical("Sweeper"),
            }
        )
    )


main()
