"""Tables in Markdown, as the scripts below this folder print them."""


def publish(lines, path):
    """Prints a table, and writes it to `path` if there is one."""
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if path:
        with open(path, "w") as file:
            file.write(text)
