"""FedPCS on a Flower deployment: one run file, a server app and a client app made of it."""
