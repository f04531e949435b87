"""Compares raw answers with AWS's own description of them, which botocore carries: members, types, what is required, what
has no body at all. The SDKs themselves forgive nearly all of it."""

import json
import re
import xml.etree.ElementTree as ElementTree
import zlib

# What every service may answer beside its own errors (AWS's common errors).
COMMON_ERRORS = {
    "InvalidParameterValueException",
    "MissingRequiredParameterException",
    "SerializationException",
    "UnknownOperationException",
    "ValidationException",
}
CONTENT_TYPES = {
    "sqs": "application/x-amz-json-1.0",
    "dynamodb": "application/x-amz-json-1.0",
    "secretsmanager": "application/x-amz-json-1.1",
    "kms": "application/x-amz-json-1.1",
    "scheduler": "application/json",
    "lambda": "application/json",
    "cloudformation": "text/xml",
}
NUMBERS = {"integer": int, "long": int, "float": (int, float), "double": (int, float), "timestamp": (int, float)}


def against(shape, value, path):
    """What of a JSON value is not as the shape has it."""
    kind = shape.type_name
    if value is None:
        return [f"{path} is null"]
    if kind == "structure":
        if not isinstance(value, dict):
            return [f"{path} is not an object"]
        if getattr(shape, "is_document_type", False):
            return []
        names = {member.serialization.get("name", name): name for name, member in shape.members.items()}
        faults = [f"{path}.{name} is not in the model" for name in value if name not in names]
        present = {names[name] for name in value if name in names}
        faults += [f"{path}.{name} is required and missing" for name in shape.required_members if name not in present]
        if getattr(shape, "is_tagged_union", False) and len(value) != 1:
            faults.append(f"{path} has {len(value)} of the members of which one is possible")
        for name in value:
            if name in names:
                faults += against(shape.members[names[name]], value[name], f"{path}.{name}")
        return faults
    if kind == "list":
        if not isinstance(value, list):
            return [f"{path} is not a list"]
        return [fault for index, item in enumerate(value) for fault in against(shape.member, item, f"{path}[{index}]")]
    if kind == "map":
        if not isinstance(value, dict):
            return [f"{path} is not a map"]
        faults = []
        for key, item in value.items():
            faults += against(shape.key, key, f"{path} key {key}") + against(shape.value, item, f"{path}[{key}]")
        return faults
    if kind == "boolean":
        return [] if isinstance(value, bool) else [f"{path} is not a boolean"]
    if kind in NUMBERS:
        fits = isinstance(value, NUMBERS[kind]) and not isinstance(value, bool)
        return [] if fits else [f"{path} is not a number: {value!r}"]
    if not isinstance(value, str):
        return [f"{path} is not a text: {value!r}"]
    if kind == "string":
        return against_text(shape, value, path)
    return []


def against_text(shape, value, path):
    if shape.enum and value not in shape.enum:
        return [f"{path} is none of the model's words: {value}"]
    least, most = shape.metadata.get("min", 0), shape.metadata.get("max", len(value))
    if not least <= len(value) <= most:
        return [f"{path} has {len(value)} characters, the model {least} to {most}"]
    pattern = shape.metadata.get("pattern")
    try:
        fits = pattern is None or re.search(pattern, value)
    except re.error:
        # A pattern of a class that Python's expressions do not know.
        fits = True
    return [] if fits else [f"{path} is not like {pattern}: {value}"]


def against_xml(shape, node, path):
    """The same for the query protocol's answers."""
    children = [(child.tag.split("}")[-1], child) for child in node]
    if shape.type_name == "structure":
        names = {member.serialization.get("name", name): name for name, member in shape.members.items()}
        faults = [f"{path}/{tag} is not in the model" for tag, _ in children if tag not in names]
        present = {names[tag] for tag, _ in children if tag in names}
        faults += [f"{path}/{name} is required and missing" for name in shape.required_members if name not in present]
        for tag, child in children:
            if tag in names:
                faults += against_xml(shape.members[names[tag]], child, f"{path}/{tag}")
        return faults
    if shape.type_name == "list":
        faults = [f"{path}/{tag} is not a member" for tag, _ in children if tag != "member"]
        return faults + [fault for _, child in children for fault in against_xml(shape.member, child, path + "[]")]
    if shape.type_name == "timestamp":
        fits = re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", node.text or "")
        return [] if fits else [f"{path} is not a time: {node.text}"]
    return against_text(shape, node.text or "", path) if shape.type_name == "string" else []


def of_answer(operation, status, headers, body):
    """What of one raw answer is not as the model has it. `headers` are by lower-case names."""
    service = operation.service_model.service_name
    path = f"{service} {operation.name} {status}"
    faults = []
    if not headers.get("x-amzn-requestid"):
        faults.append(f"{path} has no request id")
    if headers.get("content-length", "0") != "0" and headers.get("content-type", "").split(";")[0] != CONTENT_TYPES[service]:
        faults.append(f"{path} has the content type {headers.get('content-type')}")
    if service == "dynamodb" and headers.get("x-amz-crc32") != str(zlib.crc32(body)):
        faults.append(f"{path} has not the checksum of its body")
    if status >= 300:
        return faults + of_error(operation, status, headers, body, path)
    output = operation.output_shape
    in_body = {}
    if output is not None:
        places = {name: member.serialization.get("location") for name, member in output.members.items()}
        in_body = {name for name, place in places.items() if place is None}
        if output.serialization.get("payload"):
            return faults
    if not in_body:
        if body or headers.get("content-length") != "0":
            faults.append(f"{path} has a body where AWS answers with none: {body[:80]!r}")
        return faults
    if service == "cloudformation":
        root = ElementTree.fromstring(body)
        result = next((child for child in root if child.tag.endswith("Result")), None)
        if result is None:
            return faults + [f"{path} has no result"]
        ids = [node.text for node in root.iter() if node.tag.endswith("RequestId")]
        if ids != [headers.get("x-amzn-requestid")]:
            faults.append(f"{path} has another request id in its body")
        return faults + against_xml(output, result, path)
    try:
        value = json.loads(body)
    except ValueError:
        return faults + [f"{path} is not JSON: {body[:80]!r}"]
    return faults + against(output, value, path)


def of_error(operation, status, headers, body, path):
    service = operation.service_model.service_name
    if service == "cloudformation":
        root = ElementTree.fromstring(body)
        words = {node.tag.split("}")[-1] for node in root.iter()}
        missing = {"ErrorResponse", "Error", "Type", "Code", "Message", "RequestId"} - words
        return [f"{path} lacks {word}" for word in sorted(missing)]
    value = json.loads(body)
    name = headers.get("x-amzn-errortype") if CONTENT_TYPES[service] == "application/json" else value.get("__type")
    if not name:
        return [f"{path} does not say its type where the protocol has it"]
    name = name.split("#")[-1].split(":")[0]
    shapes = {shape.name: shape for shape in operation.service_model.error_shapes}
    shape = shapes.get(name)
    if shape is None:
        return [] if name in COMMON_ERRORS else [f"{path}: the service has no error {name}"]
    if CONTENT_TYPES[service] == "application/json":
        wanted = shape.metadata.get("error", {}).get("httpStatusCode", status)
        if wanted != status:
            return [f"{path}: {name} comes with {wanted}"]
    rest = {key: item for key, item in value.items() if key != "__type"}
    return against(shape, rest, f"{path} {name}")
