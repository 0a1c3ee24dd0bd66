"""The verbs: parse, call, print. Everything heavy is imported by the verb that needs it."""
