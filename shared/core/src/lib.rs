//! What Bobbin decides, without clock, network, runtime or AWS.
