//! What hostile events leave behind in the host.
