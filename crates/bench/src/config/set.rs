//! One parameter of one policy, as `policy.param=value`.

use std::str::FromStr;

/// One parameter of one policy.
#[derive(Debug, Clone, PartialEq)]
pub struct SetParam {
    /// The policy's id.
    pub policy: String,
    /// The parameter's name.
    pub param: String,
    /// The value.
    pub value: toml::Value,
}

impl FromStr for SetParam {
    type Err = String;

    /// Reads `policy.param=value`. The value is TOML; what is not TOML is a string, so that quotes are not needed.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = || format!("`{text}` is not of the form policy.param=value, such as batch-size.size=16");
        let (path, value) = text.split_once('=').ok_or_else(form)?;
        let (policy, param) = path.split_once('.').ok_or_else(form)?;
        let (policy, param, value) = (policy.trim(), param.trim(), value.trim());
        if policy.is_empty() || param.is_empty() || value.is_empty() {
            return Err(form());
        }
        let parsed = value.parse::<toml::Value>().unwrap_or_else(|_| toml::Value::String(value.to_owned()));
        Ok(Self { policy: policy.to_owned(), param: param.to_owned(), value: parsed })
    }
}

/// The parameters as a table of tables; of two values for one parameter the later wins.
pub(super) fn to_table(params: &[SetParam]) -> toml::Table {
    let mut table = toml::Table::new();
    for SetParam { policy, param, value } in params {
        let entry = table.entry(policy.clone()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        if let toml::Value::Table(inner) = entry {
            inner.insert(param.clone(), value.clone());
        }
    }
    table
}
