"""Conversations: messages, models, the loop and recipes; knows no broker and no storage."""
