//! Prices that the operator names, for models of which an agent knows none, or for an endpoint with prices of its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::tenant::budgets::MicroUsd;

/// Largest price, in US dollars for a million tokens.
const PRICE_MAX: f64 = 10_000.0;

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Price(MicroUsd);

impl TryFrom<f64> for Price {
    type Error = String;

    fn try_from(dollars: f64) -> Result<Self, String> {
        if !(0.0..=PRICE_MAX).contains(&dollars) {
            return Err(format!(
                "{dollars} is not a price. A price is in US dollars for a million tokens, from 0 to {PRICE_MAX}"
            ));
        }
        Ok(Self((dollars * 1_000_000.0).round() as MicroUsd))
    }
}

impl From<Price> for f64 {
    fn from(price: Price) -> Self {
        price.0 as Self / 1_000_000.0
    }
}

/// The prices of a model. One of 0 means that it is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// Per input token.
    pub input: Price,
    /// Per output token.
    pub output: Price,
    /// Per token read from a cache; without one it counts as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<Price>,
    /// Per token written into a cache; without one it counts as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Price>,
}

/// Prices by model, each named `provider/model`.
pub type ModelPrices = BTreeMap<String, ModelPrice>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_plain_dollars() {
        let text = r#"{"openai/x":{"input":1.25,"output":10.0,"cache_read":0.1}}"#;
        let prices: ModelPrices = serde_json::from_str(text).expect("prices");
        assert_eq!(serde_json::to_string(&prices).expect("JSON"), text);
        let whole: ModelPrice = serde_json::from_str(r#"{"input":1,"output":0}"#).expect("prices");
        assert_eq!(f64::from(whole.input), 1.0);
    }

    #[test]
    fn odd_prices_are_refused() {
        for (text, why) in [
            (r#"{"input":-1,"output":1}"#, "-1 is not a price"),
            (r#"{"input":10001,"output":1}"#, "10001 is not a price"),
            (r#"{"input":1}"#, "missing field `output`"),
            (r#"{"input":1,"output":1,"cache":2}"#, "unknown field `cache`"),
            (r#"{"input":"1","output":1}"#, "invalid type"),
        ] {
            let refused = serde_json::from_str::<ModelPrice>(text).expect_err("odd").to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
