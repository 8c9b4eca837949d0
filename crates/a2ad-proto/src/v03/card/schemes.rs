//! Ways to authenticate, as OpenAPI and hence 0.3 describe them.

use std::collections::BTreeMap;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::v03::write::Object;
use crate::{OAuthFlows, SecurityScheme};

/// A scheme that 0.3 knows.
pub(super) struct Scheme<'a>(&'a SecurityScheme);

impl<'a> Scheme<'a> {
    pub(super) fn of(scheme: &'a SecurityScheme) -> Option<Self> {
        (*scheme != SecurityScheme::Unset).then_some(Self(scheme))
    }

    pub(super) fn put_into<O: SerializeStruct>(
        &self,
        object: &mut Object<O>,
    ) -> Result<(), O::Error> {
        match self.0 {
            SecurityScheme::ApiKey(it) => {
                object.put("type", "apiKey")?;
                object.text("description", &it.description)?;
                object.put("in", &it.location)?;
                object.put("name", &it.name)
            }
            SecurityScheme::HttpAuth(it) => {
                object.put("type", "http")?;
                object.text("description", &it.description)?;
                object.put("scheme", &it.scheme)?;
                object.text("bearerFormat", &it.bearer_format)
            }
            SecurityScheme::OAuth2(it) => {
                object.put("type", "oauth2")?;
                object.text("description", &it.description)?;
                object.put("flows", &Flows(&it.flows))?;
                object.text("oauth2MetadataUrl", &it.oauth2_metadata_url)
            }
            SecurityScheme::OpenIdConnect(it) => {
                object.put("type", "openIdConnect")?;
                object.text("description", &it.description)?;
                object.put("openIdConnectUrl", &it.open_id_connect_url)
            }
            SecurityScheme::MutualTls(it) => {
                object.put("type", "mutualTLS")?;
                object.text("description", &it.description)
            }
            SecurityScheme::Unset => Ok(()),
        }
    }
}

impl Serialize for Scheme<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::begin(serializer)?;
        self.put_into(&mut object)?;
        object.end()
    }
}

struct Flows<'a>(&'a OAuthFlows);

impl Serialize for Flows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (name, flow) = match self.0 {
            OAuthFlows::AuthorizationCode(it) => (
                "authorizationCode",
                Flow {
                    authorization_url: &it.authorization_url,
                    token_url: &it.token_url,
                    refresh_url: &it.refresh_url,
                    scopes: &it.scopes,
                },
            ),
            OAuthFlows::ClientCredentials(it) => (
                "clientCredentials",
                Flow {
                    authorization_url: "",
                    token_url: &it.token_url,
                    refresh_url: &it.refresh_url,
                    scopes: &it.scopes,
                },
            ),
            OAuthFlows::Implicit(it) => (
                "implicit",
                Flow {
                    authorization_url: &it.authorization_url,
                    token_url: "",
                    refresh_url: &it.refresh_url,
                    scopes: &it.scopes,
                },
            ),
            OAuthFlows::Password(it) => (
                "password",
                Flow {
                    authorization_url: "",
                    token_url: &it.token_url,
                    refresh_url: &it.refresh_url,
                    scopes: &it.scopes,
                },
            ),
            // 0.3 has no flow for devices.
            OAuthFlows::DeviceCode(_) | OAuthFlows::Unset => {
                return Object::begin(serializer)?.end();
            }
        };
        let mut object = Object::begin(serializer)?;
        object.put(name, &flow)?;
        object.end()
    }
}

struct Flow<'a> {
    authorization_url: &'a str,
    token_url: &'a str,
    refresh_url: &'a str,
    scopes: &'a BTreeMap<String, String>,
}

impl Serialize for Flow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::begin(serializer)?;
        object.text("authorizationUrl", self.authorization_url)?;
        object.text("tokenUrl", self.token_url)?;
        object.text("refreshUrl", self.refresh_url)?;
        object.put("scopes", self.scopes)?;
        object.end()
    }
}
