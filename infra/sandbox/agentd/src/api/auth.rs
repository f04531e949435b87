//! Token authentication for all routes.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::Problem;

/// Compares in constant time: by tags under a random key.
#[derive(Debug)]
struct Token {
    key: [u8; 32],
    tag: Vec<u8>,
}

impl Token {
    fn new(token: &str) -> Self {
        let key: [u8; 32] = rand::random();
        let tag = mac(&key, token.as_bytes()).finalize().into_bytes().to_vec();
        Self { key, tag }
    }

    fn admits(&self, request: &Request) -> bool {
        let given = request
            .headers()
            .get(header::AUTHORIZATION)
            .and_then(|value| value.as_bytes().split_first_chunk::<7>())
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
        match given {
            Some((_, token)) => mac(&self.key, token).verify_slice(&self.tag).is_ok(),
            None => false,
        }
    }
}

fn mac(key: &[u8; 32], bytes: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(bytes);
    mac
}

/// Admits only requests with the token.
pub(super) fn behind(token: &str, routes: Router) -> Router {
    let token = Arc::new(Token::new(token));
    routes.layer(from_fn(move |request: Request, next: Next| {
        let token = token.clone();
        async move { check(&token, request, next).await }
    }))
}

async fn check(token: &Token, request: Request, next: Next) -> Response {
    if token.admits(&request) { next.run(request).await } else { Problem::token().into_response() }
}
