"""What CloudFormation makes of a template, without an account and without the network.

Reads the template from stdin and prints one JSON object: `findings`, what `sam validate --lint` would print (SAM CLI hands
the text to this very function of cfn-lint and does nothing else), and `translated`, what the transform of AWS makes of it.
"""

import json
import os
import sys

REGION = "eu-central-1"
# The translator asks boto3 for it.
os.environ["AWS_DEFAULT_REGION"] = REGION

from cfnlint.api import ManualArgs, lint
from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse


class NoManagedPolicies:
    """The template names none, so none has to be looked up in an account."""

    def load(self):
        return {}


def main():
    text = sys.stdin.read()
    findings = [str(finding) for finding in lint(text, config=ManualArgs(regions=[REGION]))]
    template = yaml_parse(text)
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            # As `sam package` does it: the transform knows no folders.
            resource["Properties"]["CodeUri"] = "s3://packaged/function.zip"
    translated = transform(template, {}, NoManagedPolicies())
    print(json.dumps({"findings": findings, "translated": translated}))


main()
