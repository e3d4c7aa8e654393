"""The event streams of model servers, brought into one form below the SDKs."""
