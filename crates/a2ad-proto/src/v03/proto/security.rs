//! Ways to authenticate. The numbers are those of 1.0, which has more of them.

use std::collections::BTreeMap;

use crate::wire::{message, oneof};

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct StringList of V03 {
        pub list: Vec<String> = 1 "list",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Security of V03 {
        pub schemes: BTreeMap<String, StringList> = 1 "schemes",
    }
}

oneof! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub enum SecurityScheme "scheme" of V03 {
        ApiKey(ApiKeySecurityScheme) = 1 "apiKeySecurityScheme" "api_key_security_scheme",
        HttpAuth(HttpAuthSecurityScheme) = 2 "httpAuthSecurityScheme" "http_auth_security_scheme",
        OAuth2(OAuth2SecurityScheme) = 3 "oauth2SecurityScheme" "oauth2_security_scheme",
        OpenIdConnect(OpenIdConnectSecurityScheme) = 4 "openIdConnectSecurityScheme" "open_id_connect_security_scheme",
        MutualTls(MutualTlsSecurityScheme) = 5 "mtlsSecurityScheme" "mtls_security_scheme",
    } else {
        #[default]
        Unset
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ApiKeySecurityScheme "APIKeySecurityScheme" of V03 {
        pub description: String = 1 "description",
        pub location: String = 2 "location",
        pub name: String = 3 "name",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct HttpAuthSecurityScheme "HTTPAuthSecurityScheme" of V03 {
        pub description: String = 1 "description",
        pub scheme: String = 2 "scheme",
        pub bearer_format: String = 3 "bearerFormat",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct OAuth2SecurityScheme of V03 {
        pub description: String = 1 "description",
        pub flows: Option<OAuthFlows> = 2 "flows",
        pub oauth2_metadata_url: String = 3 "oauth2MetadataUrl",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct OpenIdConnectSecurityScheme of V03 {
        pub description: String = 1 "description",
        pub open_id_connect_url: String = 2 "openIdConnectUrl",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct MutualTlsSecurityScheme of V03 {
        pub description: String = 1 "description",
    }
}

oneof! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub enum OAuthFlows "flow" of V03 {
        AuthorizationCode(AuthorizationCodeOAuthFlow) = 1 "authorizationCode" "authorization_code",
        ClientCredentials(ClientCredentialsOAuthFlow) = 2 "clientCredentials" "client_credentials",
        Implicit(ImplicitOAuthFlow) = 3 "implicit" "implicit",
        Password(PasswordOAuthFlow) = 4 "password" "password",
    } else {
        #[default]
        Unset
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct AuthorizationCodeOAuthFlow of V03 {
        pub authorization_url: String = 1 "authorizationUrl",
        pub token_url: String = 2 "tokenUrl",
        pub refresh_url: String = 3 "refreshUrl",
        pub scopes: BTreeMap<String, String> = 4 "scopes",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ClientCredentialsOAuthFlow of V03 {
        pub token_url: String = 1 "tokenUrl",
        pub refresh_url: String = 2 "refreshUrl",
        pub scopes: BTreeMap<String, String> = 3 "scopes",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ImplicitOAuthFlow of V03 {
        pub authorization_url: String = 1 "authorizationUrl",
        pub refresh_url: String = 2 "refreshUrl",
        pub scopes: BTreeMap<String, String> = 3 "scopes",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct PasswordOAuthFlow of V03 {
        pub token_url: String = 1 "tokenUrl",
        pub refresh_url: String = 2 "refreshUrl",
        pub scopes: BTreeMap<String, String> = 3 "scopes",
    }
}
