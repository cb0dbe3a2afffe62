"""How tests look at the messages of refused requests: "RULE. Received: VALUE"."""


def check_message(message, about, received):
    """Checks the message of a refusal.

    Args:
        message: one line.
        about: words of the rule, such as the name of a field.
        received: a part of the value that the message repeats.
    """
    rule, _, value = message.partition(". Received: ")
    assert about in rule and received in value, message
    assert "\n" not in message and len(message) < 280
