//! Our signatures are those that AWS's own crate makes.

use std::time::{Duration, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use bobbin_adapters::secrets::Secret;
use bobbin_adapters::signing::{Keys, Scope, Signed, authorization, date, escaped};
use proptest::prelude::*;

const HOST: &str = "sqs.eu-central-1.amazonaws.com";

/// A call: its method, its path as it is sent, the header that names its action, and its body.
struct Call<'a> {
    method: &'a str,
    path: &'a str,
    target: Option<&'a str>,
    body: &'a [u8],
}

/// The date and the signature that the oracle gives to the same request.
fn oracle(keys: &Keys, scope: Scope<'_>, call: &Call<'_>, at_s: u64) -> (String, String) {
    let token = keys.session_token.as_ref();
    let credentials = Credentials::new(
        &keys.access_key_id,
        keys.secret_access_key.expose(),
        token.map(|token| token.expose().to_owned()),
        None,
        "test",
    );
    let identity = credentials.into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(scope.region)
        .name(scope.service)
        .time(UNIX_EPOCH + Duration::from_secs(at_s))
        .settings(SigningSettings::default())
        .build()
        .expect("all is given")
        .into();
    let kind = Some(("content-type", "application/x-amz-json-1.0"));
    let target = call.target.map(|target| ("x-amz-target", target));
    let address = format!("https://{HOST}{}", call.path);
    let body = SignableBody::Bytes(call.body);
    let headers = kind.into_iter().chain(target);
    let request = SignableRequest::new(call.method, address, headers, body);
    let signed = sign(request.expect("a request"), &params).expect("signed");
    let (instructions, _) = signed.into_parts();
    let header = |name: &str| {
        let mut headers = instructions.headers();
        let found = headers.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_owned()).expect("a header")
    };
    (header("x-amz-date"), header("authorization"))
}

proptest! {
    #[test]
    fn a_signature_is_the_one_that_awss_own_crate_makes(
        key in "[A-Z0-9]{16,20}",
        secret in "[A-Za-z0-9/+=]{1,120}",
        token in proptest::option::of("[A-Za-z0-9/+=]{1,400}"),
        region in "[a-z]{2}-[a-z]{4,9}-[1-9]",
        service in prop::sample::select(vec!["sqs", "dynamodb", "secretsmanager", "scheduler"]),
        method in prop::sample::select(vec!["GET", "POST", "PUT", "DELETE"]),
        name in proptest::option::of("[^./]{1,40}"),
        action in "[A-Za-z]{1,30}",
        body in ".{0,400}",
        at_s in 0_u64..7_258_118_400,
    ) {
        let keys = Keys {
            access_key_id: key,
            secret_access_key: Secret::from(secret),
            session_token: token.map(Secret::from),
        };
        let scope = Scope { region: &region, service };
        let path = match &name {
            Some(name) => format!("/schedules/{}", escaped(name)),
            None => "/".to_owned(),
        };
        let target = name.is_none().then(|| format!("AmazonSQS.{action}"));
        let call = Call { method, path: &path, target: target.as_deref(), body: body.as_bytes() };
        let (right_date, right) = oracle(&keys, scope, &call, at_s);

        let date = date(at_s);
        let token = keys.session_token.as_ref().map(Secret::expose);
        let mut headers = vec![
            ("content-type", "application/x-amz-json-1.0"),
            ("host", HOST),
            ("x-amz-date", date.as_str()),
        ];
        headers.extend(token.map(|token| ("x-amz-security-token", token)));
        headers.extend(call.target.map(|target| ("x-amz-target", target)));
        let signed = Signed { method, path: &path, headers: &headers, body: body.as_bytes() };
        prop_assert_eq!(&date, &right_date);
        prop_assert_eq!(authorization(&keys, scope, &date, &signed), right);
    }
}
