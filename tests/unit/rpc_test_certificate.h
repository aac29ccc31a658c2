// SPDX-License-Identifier: Apache-2.0
#pragma once
// A self-signed certificate for "localhost" and its key, for tests only: both are public.

namespace weft::rpc {

inline constexpr const char* kTestCertificate = R"(-----BEGIN CERTIFICATE-----
MIIBnDCCAUGgAwIBAgIURKYzCPHdSUka5JlWI9PFycB7/s0wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTE1MDEzOVoYDzIxMjYxMDI4
MTUwMTM5WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASAL9xzfEFXGBTIuxNIhBZbBEfdMb640/OdG8qAmnGNxqD0gGCtQiMf
RbJwJJ0uOSllhSeDU1Sky8pbvif+JpGao28wbTAdBgNVHQ4EFgQUNK591gt4Gr4a
yCeA6xmW3t+qL7QwHwYDVR0jBBgwFoAUNK591gt4Gr4ayCeA6xmW3t+qL7QwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSQAwRgIhAPpxRa0qafHh8UM+ynonTeJ2dzAWKPhX7Nvu586PjRbTAiEA
wBQvMMNJZfzvVJYNUKHohnDvX/6yycjQKXcC7tTddaI=
-----END CERTIFICATE-----
)";
inline constexpr const char* kTestKey = R"(-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg9HHCOsZcAT0cPJxw
TU/QVRoLp9n96B6daiM950eHld2hRANCAASAL9xzfEFXGBTIuxNIhBZbBEfdMb64
0/OdG8qAmnGNxqD0gGCtQiMfRbJwJJ0uOSllhSeDU1Sky8pbvif+JpGa
-----END PRIVATE KEY-----
)";

}  // namespace weft::rpc
