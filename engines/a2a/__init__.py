"""Agents that speak A2A (Agent2Agent 1.0): their skills as tools, their answers as results."""
