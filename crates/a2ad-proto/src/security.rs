//! How an agent's clients authenticate, as its card tells them.

use std::collections::BTreeMap;

use crate::wire::{message, oneof};

message! {
    /// Schemes that must all be satisfied; in a list of requirements, one of them is enough.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct SecurityRequirement {
        /// The scopes needed, by the name of the scheme.
        pub schemes: BTreeMap<String, StringList> = 1 "schemes",
    }
}

message! {
    /// A list of strings, where the schema needs it as a value.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct StringList {
        /// The strings.
        pub list: Vec<String> = 1 "list",
    }
}

oneof! {
    /// One way to authenticate.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub enum SecurityScheme "scheme" {
        /// A key in a header, query or cookie.
        ApiKey(ApiKeySecurityScheme) = 1 "apiKeySecurityScheme" "api_key_security_scheme",
        /// The `Authorization` header.
        HttpAuth(HttpAuthSecurityScheme) = 2 "httpAuthSecurityScheme" "http_auth_security_scheme",
        /// OAuth 2.0.
        OAuth2(OAuth2SecurityScheme) = 3 "oauth2SecurityScheme" "oauth2_security_scheme",
        /// OpenID Connect.
        OpenIdConnect(OpenIdConnectSecurityScheme) = 4 "openIdConnectSecurityScheme" "open_id_connect_security_scheme",
        /// A client certificate.
        MutualTls(MutualTlsSecurityScheme) = 5 "mtlsSecurityScheme" "mtls_security_scheme",
    } else {
        /// None of the above: a card may name schemes of a later protocol version and is still worth reading.
        #[default]
        Unset
    }
}

message! {
    /// A key in a header, query or cookie.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ApiKeySecurityScheme "APIKeySecurityScheme" {
        /// A description for people.
        pub description: String = 1 "description",
        /// `header`, `query` or `cookie`.
        pub location: String = 2 "location" R,
        /// The name of the header, parameter or cookie.
        pub name: String = 3 "name" R,
    }
}

message! {
    /// The `Authorization` header.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct HttpAuthSecurityScheme "HTTPAuthSecurityScheme" {
        /// A description for people.
        pub description: String = 1 "description",
        /// The scheme, such as `Bearer`.
        pub scheme: String = 2 "scheme" R,
        /// What bearer tokens look like, such as `JWT`.
        pub bearer_format: String = 3 "bearerFormat",
    }
}

message! {
    /// OAuth 2.0.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct OAuth2SecurityScheme {
        /// A description for people.
        pub description: String = 1 "description",
        /// How to get a token.
        pub flows: OAuthFlows = 2 "flows" R,
        /// Where the authorization server describes itself (RFC 8414).
        pub oauth2_metadata_url: String = 3 "oauth2MetadataUrl",
    }
}

message! {
    /// OpenID Connect.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct OpenIdConnectSecurityScheme {
        /// A description for people.
        pub description: String = 1 "description",
        /// The discovery document.
        pub open_id_connect_url: String = 2 "openIdConnectUrl" R,
    }
}

message! {
    /// A client certificate.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct MutualTlsSecurityScheme {
        /// A description for people.
        pub description: String = 1 "description",
    }
}

oneof! {
    /// How to get an OAuth 2.0 token.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub enum OAuthFlows "flow" {
        /// With a browser.
        AuthorizationCode(AuthorizationCodeOAuthFlow) = 1 "authorizationCode" "authorization_code",
        /// As a service.
        ClientCredentials(ClientCredentialsOAuthFlow) = 2 "clientCredentials" "client_credentials",
        /// Without a token request; deprecated.
        Implicit(ImplicitOAuthFlow) = 3 "implicit" "implicit",
        /// With the user's password; deprecated.
        Password(PasswordOAuthFlow) = 4 "password" "password",
        /// On a device without a browser.
        DeviceCode(DeviceCodeOAuthFlow) = 5 "deviceCode" "device_code",
    } else {
        /// None of the above.
        #[default]
        Unset
    }
}

message! {
    /// A token with a browser's help.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct AuthorizationCodeOAuthFlow {
        /// Where the user agrees.
        pub authorization_url: String = 1 "authorizationUrl" R,
        /// Where tokens are issued.
        pub token_url: String = 2 "tokenUrl" R,
        /// Where tokens are renewed.
        pub refresh_url: String = 3 "refreshUrl",
        /// The scopes and what they allow.
        pub scopes: BTreeMap<String, String> = 4 "scopes" R,
        /// Whether RFC 7636 is required.
        pub pkce_required: bool = 5 "pkceRequired",
    }
}

message! {
    /// A token for a service.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ClientCredentialsOAuthFlow {
        /// Where tokens are issued.
        pub token_url: String = 1 "tokenUrl" R,
        /// Where tokens are renewed.
        pub refresh_url: String = 2 "refreshUrl",
        /// The scopes and what they allow.
        pub scopes: BTreeMap<String, String> = 3 "scopes" R,
    }
}

message! {
    /// A token straight from the authorization page; deprecated.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ImplicitOAuthFlow {
        /// Where the user agrees.
        pub authorization_url: String = 1 "authorizationUrl",
        /// Where tokens are renewed.
        pub refresh_url: String = 2 "refreshUrl",
        /// The scopes and what they allow.
        pub scopes: BTreeMap<String, String> = 3 "scopes",
    }
}

message! {
    /// A token for a user's password; deprecated.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct PasswordOAuthFlow {
        /// Where tokens are issued.
        pub token_url: String = 1 "tokenUrl",
        /// Where tokens are renewed.
        pub refresh_url: String = 2 "refreshUrl",
        /// The scopes and what they allow.
        pub scopes: BTreeMap<String, String> = 3 "scopes",
    }
}

message! {
    /// A token for a device without a browser.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct DeviceCodeOAuthFlow {
        /// Where the device asks for a code.
        pub device_authorization_url: String = 1 "deviceAuthorizationUrl" R,
        /// Where tokens are issued.
        pub token_url: String = 2 "tokenUrl" R,
        /// Where tokens are renewed.
        pub refresh_url: String = 3 "refreshUrl",
        /// The scopes and what they allow.
        pub scopes: BTreeMap<String, String> = 4 "scopes" R,
    }
}
