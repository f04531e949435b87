//! RSA keys of apps: made by num-bigint, checked by ring.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use num_bigint::BigUint;
use rand::RngCore as _;
use ring::rsa::KeyPair;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

/// Bits of each of a key's two primes.
const PRIME_BITS: usize = 1_024;
const EXPONENT: u32 = 65_537;
/// Candidates divisible by a number below this are dropped before they are tested.
const SIEVE_BELOW: u32 = 2_000;
/// Rounds of Miller and Rabin: FIPS 186-5 asks for five at this size.
const ROUNDS: usize = 8;
const PEM_COLUMNS: usize = 64;
const PEM_KIND: &str = "RSA PRIVATE KEY";

/// A new key of 2,048 bits, PKCS#1 in PEM, as GitHub gives it.
///
/// # Errors
/// ring refuses it.
pub(crate) fn generate() -> Result<String, String> {
    let (one, exponent) = (BigUint::from(1_u32), BigUint::from(EXPONENT));
    let (first, second) = (prime(), prime());
    // ring expects the larger one first.
    let (p, q) = if first > second { (first, second) } else { (second, first) };
    let (p_less, q_less) = (&p - &one, &q - &one);
    let found = exponent.modinv(&(&p_less * &q_less)).zip(q.modinv(&p));
    let (d, coefficient) = found.ok_or("two primes that do not fit")?;
    let numbers = [
        BigUint::default(),
        &p * &q,
        exponent,
        d.clone(),
        p,
        q,
        &d % p_less,
        &d % q_less,
        coefficient,
    ];
    let content: Vec<u8> = numbers.iter().flat_map(integer).collect();
    let pem = pem(&tagged(0x30, &content));
    public(&pem)?;
    Ok(pem)
}

/// The public half of a private key in PEM (PKCS#1 or PKCS#8), as PKCS#1.
///
/// # Errors
/// It is no RSA key that ring takes.
pub(crate) fn public(pem: &str) -> Result<Vec<u8>, String> {
    let text: String = pem.lines().filter(|line| !line.starts_with('-')).map(str::trim).collect();
    let der = STANDARD.decode(text).map_err(|error| format!("an app's key is no PEM: {error}"))?;
    let is_pkcs1 = pem.contains(PEM_KIND);
    let pair = if is_pkcs1 { KeyPair::from_der(&der) } else { KeyPair::from_pkcs8(&der) };
    let pair = pair.map_err(|error| format!("an app's key is no RSA key: {error}"))?;
    Ok(pair.public().as_ref().to_vec())
}

/// Whether a signature (RS256) is this key's.
pub(crate) fn is_signed(public: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public);
    key.verify(message, signature).is_ok()
}

fn prime() -> BigUint {
    loop {
        let mut bytes = [0_u8; PRIME_BITS / 8];
        rand::rng().fill_bytes(&mut bytes);
        // The two highest bits, so that the product has its full length; the lowest, so that it is odd.
        bytes[0] |= 0b1100_0000;
        bytes[PRIME_BITS / 8 - 1] |= 1;
        let candidate = BigUint::from_bytes_be(&bytes);
        let fits = &candidate % EXPONENT != BigUint::from(1_u32);
        if fits && !has_small_divisor(&candidate) && is_probably_prime(&candidate) {
            return candidate;
        }
    }
}

fn has_small_divisor(candidate: &BigUint) -> bool {
    (3..SIEVE_BELOW).step_by(2).any(|divisor| candidate % divisor == BigUint::default())
}

/// Miller and Rabin.
fn is_probably_prime(candidate: &BigUint) -> bool {
    let one = BigUint::from(1_u32);
    let less = candidate - &one;
    let twos = less.trailing_zeros().unwrap_or_default();
    let odd = &less >> twos;
    let is_witness = || {
        let mut bytes = [0_u8; PRIME_BITS / 8];
        rand::rng().fill_bytes(&mut bytes);
        let base = BigUint::from_bytes_be(&bytes) % &less + &one;
        let mut power = base.modpow(&odd, candidate);
        if power == one || power == less {
            return false;
        }
        for _ in 1..twos {
            power = &power * &power % candidate;
            if power == less {
                return false;
            }
        }
        true
    };
    !(0..ROUNDS).any(|_| is_witness())
}

/// A DER integer.
fn integer(number: &BigUint) -> Vec<u8> {
    let mut bytes = number.to_bytes_be();
    // A set highest bit would mean a negative number.
    if bytes[0] >= 0x80 {
        bytes.insert(0, 0);
    }
    tagged(0x02, &bytes)
}

fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len().to_be_bytes();
    let length: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    match length.as_slice() {
        [] => out.push(0),
        [short] if *short < 0x80 => out.push(*short),
        long => {
            out.push(0x80 | u8::try_from(long.len()).unwrap_or_default());
            out.extend(long);
        }
    }
    out.extend(content);
    out
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines = text.as_bytes().chunks(PEM_COLUMNS).map(|line| String::from_utf8_lossy(line));
    let lines: Vec<_> = lines.collect();
    format!("-----BEGIN {PEM_KIND}-----\n{}\n-----END {PEM_KIND}-----\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::rand::SystemRandom;
    use ring::signature::RSA_PKCS1_SHA256;

    #[test]
    fn new_key_signs_what_its_public_half_verifies() {
        let pem = generate().expect("a key");
        let other = public(&generate().expect("another")).expect("its public half");
        let text: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        let pair = KeyPair::from_der(&STANDARD.decode(text).expect("base64")).expect("a key");
        assert_eq!(pair.public().modulus_len(), 2 * PRIME_BITS / 8);
        let mut signature = vec![0; pair.public().modulus_len()];
        pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), b"text", &mut signature)
            .expect("signed");
        let own = public(&pem).expect("its public half");
        assert!(is_signed(&own, b"text", &signature));
        assert!(!is_signed(&own, b"other text", &signature));
        assert!(!is_signed(&other, b"text", &signature));
    }

    #[test]
    fn something_else_is_no_key() {
        assert!(public("-----BEGIN PRIVATE KEY-----\nQUJD\n-----END PRIVATE KEY-----").is_err());
        assert!(public("no key at all").is_err());
    }
}
